// hf-hub 0.4, unchanged, by the environment's HF_ENDPOINT and HF_HOME: `info REPO`, `get REPO FILE`, `get-in-parts REPO FILE`.
// The last line printed is JSON; an error ends with status 1.

use hf_hub::api::{sync, tokio::ApiBuilder};
use serde_json::{Value, json};
use std::error::Error;

fn info(repo: String) -> Result<Value, Box<dyn Error>> {
    let info = sync::ApiBuilder::from_env().build()?.model(repo).info()?;
    let names: Vec<_> = info.siblings.into_iter().map(|one| one.rfilename).collect();
    Ok(json!({"sha": info.sha, "siblings": names}))
}

fn get(repo: String, file: &str) -> Result<Value, Box<dyn Error>> {
    Ok(json!(sync::ApiBuilder::from_env().with_progress(false).build()?.model(repo).get(file)?))
}

// Several ranges at a time.
fn get_in_parts(repo: String, file: &str) -> Result<Value, Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let api = ApiBuilder::from_env().with_progress(false).with_max_files(4).with_chunk_size(Some(1 << 20)).build()?;
    Ok(json!(runtime.block_on(api.model(repo).get(file))?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match texts[..] {
        ["info", repo] => info(repo.to_string())?,
        ["get", repo, file] => get(repo.to_string(), file)?,
        ["get-in-parts", repo, file] => get_in_parts(repo.to_string(), file)?,
        _ => return Err("what?".into()),
    };
    println!("\n{answer}");
    Ok(())
}
