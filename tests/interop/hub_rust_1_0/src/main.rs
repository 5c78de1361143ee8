// hf-hub 1.0, unchanged, by the environment's HF_ENDPOINT and HF_HOME. The last line printed is JSON; an error ends with
// status 1.

use hf_hub::HFClientSync;
use hf_hub::repository::{AddSource, RepoTreeEntry, RepoTypeModel};
use serde_json::{Value, json};
use std::error::Error;

fn path_of(entry: &RepoTreeEntry) -> &str {
    match entry {
        RepoTreeEntry::File { path, .. } | RepoTreeEntry::Directory { path, .. } => path,
    }
}

fn answer(arguments: &[&str]) -> Result<Value, Box<dyn Error>> {
    let client = HFClientSync::new()?;
    let [function, owner, name, rest @ ..] = arguments else { return Err("what?".into()) };
    let repo = client.model(owner.to_string(), name.to_string());
    Ok(match (*function, rest) {
        ("info", []) => {
            let info = repo.info().send()?;
            let names: Vec<_> = info.siblings.unwrap_or_default().into_iter().map(|one| one.rfilename).collect();
            json!({"sha": info.sha, "siblings": names})
        }
        ("tree", []) => {
            let entries = repo.list_tree().recursive(true).send()?;
            json!(entries.iter().map(path_of).collect::<Vec<_>>())
        }
        ("get", [file]) => json!(repo.download_file().filename(*file).send()?),
        ("snapshot", []) => json!(repo.snapshot_download().send()?),
        ("exists", [file]) => json!([repo.exists().send()?, repo.file_exists().filename(file).send()?]),
        ("create", []) => json!(client.create_repository().repo_id(&format!("{owner}/{name}")).repo_type(RepoTypeModel).send()?.url),
        ("upload", [source, path]) => {
            json!(repo.upload_file().source(AddSource::file(*source)).path_in_repo(*path).send()?.commit_oid)
        }
        ("delete", [path]) => json!(repo.delete_file().path_in_repo(*path).send()?.commit_oid),
        _ => return Err("what?".into()),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("\n{}", answer(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?);
    Ok(())
}
