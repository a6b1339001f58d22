//! Where fuzzing starts: each instruction at least once, with everything in order, so that the program accepts it.

use crate::chunk_buffer::{self, digest};
use crate::delegation;
use crate::runtime::{Outcome, key};

/// An input that is checked in as `corpus/<target>/<name>`.
pub struct Seed {
    pub target: &'static str,
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

impl Seed {
    /// Runs the seed.
    pub fn check(&self) -> Outcome {
        match self.target {
            "chunk_buffer" => chunk_buffer::check(&self.bytes),
            "delegation" => delegation::check(&self.bytes),
            "patch" => crate::patch::check(&self.bytes),
            other => panic!("target {other}"),
        }
    }
}

/// All seeds.
pub fn all() -> Vec<Seed> {
    let mut seeds = of_chunk_buffer();
    seeds.extend(of_delegation());
    seeds.extend(of_patch());
    seeds
}

/// Instruction data, or a patch.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    fn of(instruction: u8) -> Self {
        Self(vec![instruction])
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn slice(self, bytes: &[u8]) -> Self {
        self.u32(bytes.len() as u32).bytes(bytes)
    }

    /// The first commit of session 0.
    fn commit(instruction: u8) -> Self {
        Self::of(instruction).u64(0).u64(1).u64(7)
    }
}

fn of_chunk_buffer() -> Vec<Seed> {
    use chunk_buffer::Plan;
    let seed = |name, plan: Plan, data: Data| Seed {
        target: "chunk_buffer",
        name,
        bytes: [plan.write(), data.0].concat(),
    };
    // Three chunks, the last of which is short.
    let open = || Plan { state: 1, payload_len: 20, chunk_size: 8, fill: 0x55, bitmap: 1, ..Plan::default() };
    let full = || Plan { bitmap: 255, ..open() };
    let long = || Plan { segments: 0xb1, payload_len: 9, chunk_size: 1 << 20, ..full() };
    let payload = vec![0x55; (2 << 20) + 9];
    vec![
        seed("init", Plan { state: 0, ..open() }, Data::of(1).slice(b"seed").u32(20).u32(8)),
        seed("init_empty", Plan { chunk_size: 1, ..Plan::default() }, Data::of(1).slice(b"").u32(0).u32(1)),
        seed("write", open(), Data::of(2).u32(8).slice(b"whole.. ")),
        seed("write_short", open(), Data::of(2).u32(16).slice(b"last")),
        seed("write_again", full(), Data::of(2).u32(0).slice(b"rewrites")),
        seed("write_hashed", Plan { hashed: 1, ..long() }, Data::of(2).u32(2 << 20).slice(&[0x55; 9])),
        seed("seal", full(), Data::of(3).bytes(&digest(&payload[..20], 1))),
        seed("seal_first", long(), Data::of(3).bytes(&digest(&payload, 2))),
        seed("seal_last", Plan { hashed: 1, ..long() }, Data::of(3).bytes(&digest(&payload, 2))),
        seed("close", open(), Data::of(4)),
        seed("close_sealed", Plan { state: 2, ..open() }, Data::of(4)),
        seed("close_to_authority", Plan { again: 2, flip: 1 << 4, ..open() }, Data::of(4)),
        seed("resize_up", Plan { lamports: [200, 0], ..full() }, Data::of(5).u32(40)),
        seed("resize_up_far", Plan { lamports: [200, 0], ..open() }, Data::of(5).u32(8000)),
        seed("resize_down", full(), Data::of(5).u32(9)),
        seed("resize_same", open(), Data::of(5).u32(20)),
        seed("set_authority", open(), Data::of(6).bytes(&key(1))),
    ]
}

fn of_delegation() -> Vec<Seed> {
    use delegation::Plan;
    let seed = |name, plan: Plan, payload: &[u8], data: Data| {
        let plan = Plan { payload_len: payload.len() as u8, ..plan };
        Seed { target: "delegation", name, bytes: [plan.write(), payload.to_vec(), data.0].concat() }
    };
    let rich = [200, 200, 200];
    let delegated = || Plan { account_len: 4, fill: 0x55, lamports: rich, slot: 1, ..Plan::default() };
    let pending = || Plan { pending: 1, record_len: 4, ..delegated() };
    let none = || Plan { record: 1, lamports: [200, 0, 200], ..delegated() };
    let staged = || Plan { staged: 1, ..delegated() };
    let patch = Data::default().u32(6).u32(1).slice(b"ab").u32(5).slice(b"c").0;
    vec![
        seed("reserve", none(), b"", Data::of(1).u32(100)),
        seed("reserve_prefunded", Plan { lamports: rich, ..none() }, b"", Data::of(1).u32(20_000)),
        seed("reserve_more", pending(), b"", Data::of(1).u32(20_000)),
        seed("begin_delegate", none(), b"", Data::of(2).slice(b"state")),
        seed(
            "begin_delegate_reserved",
            Plan { owner_program: 1, lamports: [200, 0, 200], ..pending() },
            b"",
            Data::of(2).slice(b"state"),
        ),
        seed("delegate", pending(), b"", Data::of(3).bytes(&key(0xb1))),
        seed("grow", delegated(), b"", Data::of(4).u32(20_000)),
        seed("commit", delegated(), b"", Data::commit(5).slice(b"a new state")),
        seed("commit_buffer", delegated(), b"from a buffer", Data::commit(6).bytes(&[0])),
        seed("commit_buffer_patch", delegated(), &patch, Data::commit(6).bytes(&[1])),
        seed("stage", delegated(), b"staged", Data::commit(7).bytes(&[0])),
        seed("finalize", staged(), b"staged", Data::of(8)),
        seed("finalize_patch", Plan { staged_kind: 1, ..staged() }, &patch, Data::of(8)),
        seed("undelegate", delegated(), b"", Data::of(9)),
        seed("undelegate_remaining", Plan { accounts: 129, restore: 1, ..delegated() }, b"", Data::of(9)),
        seed("undelegate_buffer", Plan { rent_payer: 0xb3, ..delegated() }, b"the last", Data::commit(10)),
        seed("commit_patch", delegated(), b"", Data::commit(11).slice(&patch)),
        seed("unstage", staged(), b"staged", Data::of(12)),
        seed("set_authority", delegated(), b"", Data::of(13).bytes(&key(1))),
        seed("withdraw", delegated(), b"", Data::of(14).u64(1000)),
    ]
}

fn of_patch() -> Vec<Seed> {
    let seed = |name, account_len: u16, patch: Data| Seed {
        target: "patch",
        name,
        bytes: [account_len.to_le_bytes().to_vec(), patch.0].concat(),
    };
    let to = |len| Data::default().u32(len);
    vec![
        seed("nothing", 4, to(4)),
        seed("empty", 4, to(0)),
        seed("longer", 4, to(10_000)),
        seed("shorter", 40, to(7)),
        seed("range", 16, to(16).u32(3).slice(b"abc")),
        seed("ranges", 16, to(16).u32(0).slice(b"a").u32(1).slice(b"bc").u32(12).slice(b"defg")),
        seed("range_at_end", 16, to(20).u32(18).slice(b"ab")),
        seed("range_without_bytes", 16, to(16).u32(16).slice(b"")),
        seed("longer_and_range", 300, to(9_000).u32(250).slice(&[7; 100])),
        seed("shorter_and_range", 300, to(100).u32(90).slice(&[7; 10])),
    ]
}
