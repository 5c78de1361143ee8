/* ZT_SANITIZED is defined if a sanitizer replaces the allocator; tests of memory then leave
 * their figures out. */
#ifndef ZT_TEST_SANITIZED_H
#define ZT_TEST_SANITIZED_H

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define ZT_SANITIZED
#endif
#endif
#if !defined(ZT_SANITIZED) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define ZT_SANITIZED
#endif

#endif
