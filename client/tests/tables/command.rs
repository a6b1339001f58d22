//! The `committor tables` command.

use committor_client::chain::Chain;
use committor_localnet::{Validator, on_each_validator};
use solana_address::Address;

use crate::world::{World, keys, named};

async fn the_command_line_lists_tables_and_closes_them(validator: Validator) {
    let world = World::new(validator).await;
    let (tables, _) = world.tables();
    let unused = tables.reserve(named("a"), &keys(0..256)).await.unwrap()[0].address;
    let needed = tables.reserve(named("b"), &keys(256..259)).await.unwrap()[0].address;
    tables.release(named("a")).await.unwrap();
    drop(tables);
    let json = async |args: &[&str]| -> serde_json::Value {
        let output = world.committor(&[args, &["--output", "json"]].concat()).await;
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{error}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let rent = world.rpc().rent().await.unwrap();
    let table = |table: Address, state: &str, entries: u64, references: u64| {
        let lamports = rent.empty_account_lamports + rent.lamports_per_byte * (56 + 32 * entries);
        serde_json::json!({
            "pubkey": table.to_string(), "origin": "created", "state": state, "deactivated_since_slot": null,
            "entries": entries, "references": references, "lamports": lamports,
        })
    };
    let list = json(&["tables", "list"]).await;
    assert_eq!(list["tables"][0], table(unused, "active", 256, 0));
    assert_eq!(list["tables"][1], table(needed, "active", 3, 3));
    let shown = world.committor(&["tables", "list"]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(&unused.to_string()) && shown.contains("active"), "{shown}");

    // Nobody's table: nothing is done.
    let output = world.committor(&["tables", "close", &unused.to_string(), &keys(1..2)[0].to_string()]).await;
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("is not a lookup table of this authority"), "{error}");
    // What nobody needs; then one by name, and all that there are.
    let done = json(&["tables", "close"]).await;
    assert_eq!(done["deactivated"], serde_json::json!([unused.to_string()]));
    let list = json(&["tables", "list"]).await;
    assert!(list["tables"][0]["deactivated_since_slot"].is_u64(), "{list}");
    let done = json(&["tables", "close", &needed.to_string()]).await;
    assert_eq!(done["deactivated"], serde_json::json!([needed.to_string()]));
    let done = json(&["tables", "close", "--all", "--wait"]).await;
    assert_eq!(done["closed"].as_array().unwrap().len(), 2);
    assert_eq!(json(&["tables", "list"]).await["tables"], serde_json::json!([]));
    assert_eq!(json(&["tables", "list", "--all"]).await["tables"][1]["state"], "closed");
    world.check_all_closed("in the end").await;
}

on_each_validator!(the_command_line_lists_tables_and_closes_them);
