//! Files that people have: dumps of `solana account --output json`, folders of them, and changesets.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use committor_client::{AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, types::Action};
use serde::Deserialize;
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

use crate::exit::{CommandError, Kind};

/// The longest state that a file may hold, in bytes: no account is longer.
const MAX_STATE_LEN: usize = 10 * 1024 * 1024;

/// A dump: one account and its state.
#[derive(Clone, Debug)]
pub struct Dump {
    /// The account that the dump names.
    pub pubkey: Address,
    /// Its state.
    pub state: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Dump(DumpDocument),
    Changeset(ChangesetDocument),
}

#[derive(Deserialize)]
struct DumpDocument {
    pubkey: String,
    account: DumpedAccount,
}

#[derive(Deserialize)]
struct DumpedAccount {
    data: (String, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangesetDocument {
    bundles: Vec<BundleDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BundleDocument {
    id: u64,
    mode: Option<CommitMode>,
    accounts: Vec<AccountDocument>,
    #[serde(default)]
    actions: Vec<ActionDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionDocument {
    program: String,
    #[serde(default)]
    accounts: Vec<MetaDocument>,
    data: (String, String),
    compute_units: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetaDocument {
    pubkey: String,
    #[serde(default)]
    signer: bool,
    #[serde(default)]
    writable: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountDocument {
    pubkey: String,
    data: (String, String),
}

/// What a file holds.
enum Content {
    Dump(Dump),
    Changeset(Changeset),
}

/// Reads files and folders into one changeset.
pub fn read_changeset(
    files: &[PathBuf],
    atomic: bool,
    account: Option<&str>,
    mode: CommitMode,
) -> Result<Changeset, CommandError> {
    let mut bundles = Vec::new();
    let mut dumps = Vec::new();
    for path in expand(files)? {
        match read(&path, mode)? {
            Content::Dump(dump) => dumps.push(dump),
            Content::Changeset(changeset) => bundles.extend(changeset.bundles),
        }
    }
    if let Some(account) = account {
        let [dump] = dumps.as_mut_slice() else {
            return Err(usage(format!("--account needs exactly one dump, {} were given", dumps.len())));
        };
        dump.pubkey = pubkey(account).map_err(|error| usage(format!("--account {account}: {error}")))?;
    }
    let commits =
        dumps.into_iter().map(|dump| AccountCommit { account: dump.pubkey, state: dump.state.into() });
    // Bundles of a changeset file keep their ids; those made here take what is free.
    let taken: HashSet<u64> = bundles.iter().map(|bundle| bundle.id.0).collect();
    let mut free = (1..).filter(|id| !taken.contains(id)).map(BundleId);
    if atomic {
        let commits: Vec<_> = commits.collect();
        if !commits.is_empty() {
            bundles.extend(free.next().map(|id| CommitBundle::new(id, commits).mode(mode)));
        }
    } else {
        bundles.extend(commits.zip(free).map(|(commit, id)| CommitBundle::new(id, vec![commit]).mode(mode)));
    }
    Ok(Changeset { bundles })
}

/// Reads dumps from files and folders.
pub fn read_dumps(files: &[PathBuf]) -> Result<Vec<Dump>, CommandError> {
    let read = |path: PathBuf| match read(&path, CommitMode::default())? {
        Content::Dump(dump) => Ok(dump),
        Content::Changeset(_) => Err(usage(format!("{}: a changeset, expected a dump", path.display()))),
    };
    expand(files)?.into_iter().map(read).collect()
}

/// Parses a dump.
pub fn parse_dump(text: &str) -> Result<Dump, String> {
    let document: DumpDocument = serde_json::from_str(text).map_err(|error| error.to_string())?;
    dump(&document)
}

/// Replaces each folder by the `.json` files in it, by name.
fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut expanded = Vec::new();
    for path in files {
        if !path.is_dir() {
            expanded.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
        let entries: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut entries = entries.map_err(|error| unreadable(path, &error))?;
        entries.retain(|entry| entry.extension().is_some_and(|extension| extension == "json"));
        entries.sort();
        if entries.is_empty() {
            return Err(usage(format!("{}: no .json files in this folder", path.display())));
        }
        expanded.extend(entries);
    }
    Ok(expanded)
}

fn read(path: &Path, mode: CommitMode) -> Result<Content, CommandError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    parse(&text, mode).map_err(|error| usage(format!("{}: {error}", path.display())))
}

fn parse(text: &str, mode: CommitMode) -> Result<Content, String> {
    // First as plain JSON, so that a slip of the pen is named with its line.
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let document = if value.get("bundles").is_some() {
        serde_json::from_value(value)
            .map(Document::Changeset)
            .map_err(|error| format!("not a changeset: {error}"))?
    } else if value.get("pubkey").is_some() {
        serde_json::from_value(value).map(Document::Dump).map_err(|error| format!("not a dump: {error}"))?
    } else {
        return Err("neither a dump (`pubkey`, `account`) nor a changeset (`bundles`)".to_owned());
    };
    match document {
        Document::Dump(document) => dump(&document).map(Content::Dump),
        Document::Changeset(document) => {
            let bundles =
                document.bundles.iter().map(|document| bundle(document, mode)).collect::<Result<_, _>>()?;
            Ok(Content::Changeset(Changeset { bundles }))
        }
    }
}

fn dump(document: &DumpDocument) -> Result<Dump, String> {
    let pubkey = pubkey(&document.pubkey).map_err(|error| format!("`pubkey`: {error}"))?;
    let state = decode(&document.account.data).map_err(|error| format!("`account.data`: {error}"))?;
    Ok(Dump { pubkey, state })
}

fn bundle(document: &BundleDocument, mode: CommitMode) -> Result<CommitBundle, String> {
    let commit = |(index, account): (usize, &AccountDocument)| {
        let at = |field: &str, error: &dyn fmt::Display| {
            format!("bundle {}, account {index}, `{field}`: {error}", document.id)
        };
        let pubkey = pubkey(&account.pubkey).map_err(|error| at("pubkey", &error))?;
        let state = decode(&account.data).map_err(|error| at("data", &error))?;
        Ok(AccountCommit { account: pubkey, state: state.into() })
    };
    let commits = document.accounts.iter().enumerate().map(commit).collect::<Result<_, String>>()?;
    let actions = document.actions.iter().enumerate().map(|(index, action)| {
        self::action(action).map_err(|error| format!("bundle {}, action {index}, {error}", document.id))
    });
    Ok(CommitBundle {
        id: BundleId(document.id),
        mode: document.mode.unwrap_or(mode),
        commits,
        actions: actions.collect::<Result<_, String>>()?,
    })
}

fn action(document: &ActionDocument) -> Result<Action, String> {
    let program_id = pubkey(&document.program).map_err(|error| format!("`program`: {error}"))?;
    let meta = |(index, meta): (usize, &MetaDocument)| {
        let pubkey = pubkey(&meta.pubkey).map_err(|error| format!("account {index}, `pubkey`: {error}"))?;
        Ok(AccountMeta { pubkey, is_signer: meta.signer, is_writable: meta.writable })
    };
    let accounts = document.accounts.iter().enumerate().map(meta).collect::<Result<_, String>>()?;
    let data = decode(&document.data).map_err(|error| format!("`data`: {error}"))?;
    let instruction = Instruction { program_id, accounts, data };
    Ok(Action { instruction, compute_units: document.compute_units })
}

fn pubkey(text: &str) -> Result<Address, String> {
    text.parse().map_err(|_| format!("`{text}` is not a base58 public key"))
}

fn decode((data, encoding): &(String, String)) -> Result<Vec<u8>, String> {
    let bytes = BASE64_STANDARD.decode(data).map_err(|error| format!("not base64: {error}"))?;
    match encoding.as_str() {
        "base64" => Ok(bytes),
        "base64+zstd" => {
            let bytes = zstd::bulk::decompress(&bytes, MAX_STATE_LEN);
            bytes.map_err(|error| format!("not zstd of at most {MAX_STATE_LEN} bytes: {error}"))
        }
        other => Err(format!("the encoding is `{other}`, expected `base64` or `base64+zstd`")),
    }
}

fn usage(message: String) -> CommandError {
    CommandError::new(Kind::Usage, message)
}

fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    usage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBKEY: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

    #[test]
    fn dumps_and_changesets_in_both_encodings() {
        let zstd = BASE64_STANDARD.encode(zstd::bulk::compress(b"state", 0).unwrap());
        for data in [
            format!(r#"["{}", "base64"]"#, BASE64_STANDARD.encode("state")),
            format!(r#"["{zstd}", "base64+zstd"]"#),
        ] {
            let dump = format!(r#"{{"pubkey": "{PUBKEY}", "account": {{"lamports": 1, "data": {data}}}}}"#);
            assert_eq!(parse_dump(&dump).unwrap().state, b"state");
            let changeset = format!(
                r#"{{"bundles": [{{"id": 18446744073709551615, "accounts": [{{"pubkey": "{PUBKEY}", "data": {data}}}]}}]}}"#
            );
            let Ok(Content::Changeset(changeset)) = parse(&changeset, CommitMode::Stage) else {
                panic!("a changeset")
            };
            assert_eq!(changeset.bundles[0].id, BundleId(u64::MAX));
            assert_eq!(changeset.bundles[0].mode, CommitMode::Stage, "the default that was given");
            assert_eq!(&changeset.bundles[0].commits[0].state[..], b"state");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", "not JSON"),
            ("[1]", "neither a dump"),
            (r#"{"pubkey": "x", "account": {"data": ["", "base64"]}}"#, "`pubkey`: `x`"),
            (r#"{"pubkey": "P", "account": {"data": ["*", "base64"]}}"#, "`account.data`: not base64"),
            (r#"{"pubkey": "P", "account": {"data": ["", "base58"]}}"#, "the encoding is `base58`"),
            (r#"{"pubkey": "P", "account": {"data": ["AAAA", "base64+zstd"]}}"#, "not zstd"),
            (r#"{"pubkey": "P", "account": {}}"#, "missing field `data`"),
            (r#"{"bundles": [{"id": 1, "acounts": []}]}"#, "unknown field `acounts`"),
            (
                r#"{"bundles": [{"id": 7, "accounts": [{"pubkey": "P", "data": ["", "x"]}]}]}"#,
                "bundle 7, account 0, `data`",
            ),
            (r#"{"bundles": [{"id": 7, "mode": "finalise", "accounts": []}]}"#, "unknown variant `finalise`"),
            (
                r#"{"bundles": [{"id": 7, "accounts": [], "actions": [{"program": "x", "data": ["", "base64"]}]}]}"#,
                "bundle 7, action 0, `program`: `x`",
            ),
        ];
        for (text, expected) in cases {
            let text = text.replace("\"P\"", &format!("\"{PUBKEY}\""));
            let error =
                parse(&text, CommitMode::Finalize).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
