# shellcheck shell=bash
# Which files of tests/http run where not all of them do. Sourced by tests/run.sh, at the top of the checkout.

# http_files NAME...: the files tests/http/test_NAME.py. pytest fails if one does not exist.
http_files()
{
    printf 'tests/http/test_%s.py\n' "$@"
}

# Tests in which threads meet: the thread sanitizer runs these. The others compare values, which threads do not change.
thread_files()
{
    http_files access access_reload admission blobs bucket bucket_cache bucket_facts bucket_faults bucket_files bucket_lies bucket_lists bucket_races \
        bucket_uploads catalog chunked_bodies components concatenation connections crash deferred_length delete digests \
        disk_reserve drain export fairness fault_walk faults files_index files_written hub_copies hub_creating \
        hub_first_requests hub_folders hub_lfs hub_lfs_parts hub_links hub_list hub_permits hub_probed hub_reading \
        hub_revisions hub_staged_owners hub_views hub_writing hub_xet hub_xet_sessions idle_neighbours idle_states \
        kept_answers kept_bodies large_answers long_bodies metrics mixed_folder models overload parts_written preview \
        processors refused_early reload resumable resumable_end resumable_restart s3_multipart shared_folder shared_statistics side_files \
        slow_readers store_log timing tls tls_certificates under_attack upload upload_descriptors upload_expiry uploads_list \
        verification versions_races writer writer_changes writer_refusals writer_restart
}

# What a store is asked for: these run over a bucket too. With --all, every file does that is not about the wire.
store_files()
{
    http_files catalog components concatenation conditionals delete files_index files_written hub_lfs hub_revisions \
        hub_writing hub_xet models parts parts_written resumable upload verification writer
}

# These say nothing of a store: connections and bodies on the wire, pages, TLS, tokens, configuration, overload, system calls.
left_out_over_a_bucket=(access_log access_proofs admission browsers bucket connections crash fairness faults hostile_requests
    idle_neighbours kept_bodies long_bodies overload processors protocol read_only_store reload sandbox slow_readers sync_order
    timing tls under_attack)

# All others, without those that bring a bucket of their own.
files_over_a_bucket()
{
    local left_out
    left_out=$(IFS='|' && echo "${left_out_over_a_bucket[*]}")
    find tests/http -name 'test_*.py' | grep -vE "/test_($left_out)(_[a-z]+)?\.py$" | sort
}
