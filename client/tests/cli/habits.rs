//! What people expect of a command for Solana, and of any command.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use insta::assert_snapshot;
use solana_keypair::Keypair;

use crate::world::World;

/// What a command says that is given a text on stdin: exit code and stderr.
fn with_stdin(world: &World, args: &[&str], text: &str) -> (i32, String) {
    let mut command = world.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_keypair_comes_from_where_solanas_tools_take_it_and_is_never_quoted() {
    let world = World::new();
    let keypair = format!("{:?}", Keypair::new_from_array([1; 32]).to_bytes().to_vec());
    world.write("id.json", &keypair);
    let unreachable = ["--url", "http://localhost:1"];
    let list = |source: &'static str| [&["list", "--keypair", source], unreachable.as_slice()].concat();
    // Read, and so the cluster is asked.
    for (source, stdin) in [("id.json", ""), ("file:id.json", ""), ("-", &keypair), ("stdin://", &keypair)] {
        let (code, said) = with_stdin(&world, &list(source), stdin);
        assert_eq!(code, 6, "{source}: {said}");
    }
    let mut shown = String::new();
    for (source, stdin) in [
        ("-", "secret words"),
        ("-", ""),
        ("ASK", "secret words"),
        ("prompt://?key=0/0", "secret words"),
        ("usb://ledger?key=0", ""),
    ] {
        let (code, said) = with_stdin(&world, &list(source), stdin);
        shown.push_str(&format!("$ committor list --keypair {source}\nexit code: {code}\n{said}\n"));
    }
    assert!(!shown.contains("secret"));
    assert_snapshot!("keypairs", shown);
}

#[test]
fn the_configured_commitment_is_used_and_a_wrong_one_is_refused() {
    let world = World::new();
    let wrong = world.show(&["list", "--commitment", "processed"]);
    assert!(
        wrong.starts_with("exit code: 2") && wrong.contains("expected confirmed or finalized"),
        "{wrong}"
    );
}

#[test]
fn shells_complete_every_command_and_bash_can_read_the_script() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]);
        assert!(script.status.success());
        let text = String::from_utf8(script.stdout).unwrap();
        for word in ["upload", "set-authority", "in-flight", "max-lamports"] {
            assert!(text.contains(word), "{shell} does not know {word}");
        }
        if shell == "bash" {
            world.write("completions", &text);
            let check = Command::new("bash").arg("-n").arg(world.path("completions")).status().unwrap();
            assert!(check.success());
        }
    }
    assert!(world.show(&["completions", "csh"]).starts_with("exit code: 2"));
}

#[test]
fn every_command_has_a_manual_page() {
    let world = World::new();
    assert!(world.run(&["man", "pages"]).status.success());
    for page in ["committor", "committor-upload", "committor-bench-plan", "committor-tables-list"] {
        let text = std::fs::read_to_string(world.path(&format!("pages/{page}.1"))).unwrap();
        assert!(text.contains(".TH") && text.contains(".SH SYNOPSIS"), "{page}");
    }
    world.write("file", "");
    assert!(world.show(&["man", "file"]).starts_with("exit code: 2"));
}

#[test]
fn nothing_that_is_piped_has_escape_codes() {
    let world = World::new();
    for args in [&["--help"][..], &["list"], &["upload", "none"], &["status"], &["comit"]] {
        for color in [None, Some("NO_COLOR")] {
            let mut command = world.command(args);
            if let Some(color) = color {
                command.env(color, "1");
            }
            let output = command.output().unwrap();
            assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
        }
    }
}
