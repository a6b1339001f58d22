//! Creates, fills, seals, reads and closes a chunk buffer with Anchor's own client.
//!
//! `declare_program!` makes the instructions and the account type from the IDL; nothing here depends on the
//! program or on `committor-sdk`.
//!
//! ```sh
//! cargo run -- --url http://127.0.0.1:8899 --keypair ~/.config/solana/id.json
//! ```

use std::{rc::Rc, time::SystemTime};

use anchor_client::{Client, CommitmentConfig, Program};
// All of it: the code that `declare_program!` generates needs names of the prelude.
use anchor_lang::{prelude::*, solana_program::system_instruction};
use anyhow::{Context, Result, anyhow, ensure};
use bytemuck::bytes_of;
use sha2::{Digest, Sha256};
use solana_keypair::{Keypair, read_keypair_file};

mod options;
use options::Options;

declare_program!(chunk_buffer);
use chunk_buffer::{
    accounts::Buffer,
    client::{accounts, args},
};

// `declare_program!` reads this file unseen by cargo, which would not compile again when it changes.
const _: &str = include_str!("../idls/chunk_buffer.json");

const PAYLOAD_LEN: u32 = 3_300;
/// A legacy transaction of 1,232 bytes has room for a chunk of 1,019.
const CHUNK_SIZE: u32 = 1_000;
const CHUNK_COUNT: u32 = PAYLOAD_LEN.div_ceil(CHUNK_SIZE);
/// An account holds a discriminator, the header, the payload and a bitmap of the chunks written.
const PAYLOAD_OFFSET: usize = Buffer::DISCRIMINATOR.len() + size_of::<Buffer>();
const ACCOUNT_LEN: u64 = PAYLOAD_OFFSET as u64 + PAYLOAD_LEN as u64 + CHUNK_COUNT.div_ceil(8) as u64;
/// `Buffer::state`.
const OPEN: u8 = 1;
const SEALED: u8 = 2;

fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let keypair = read_keypair_file(&options.keypair)
        .map_err(|error| anyhow!("could not read a keypair from {}: {error}", options.keypair))?;
    let client = Client::new_with_options(options.cluster, Rc::new(keypair), CommitmentConfig::confirmed());
    let example = Example::new(client.program(chunk_buffer::ID)?)?;

    example.create().context("could not create the buffer")?;
    // Any order will do. The last chunk is short.
    for index in [2, 0, 3, 1] {
        example.write(index).with_context(|| format!("could not write chunk {index}"))?;
    }
    let filled = example.filled_header();
    example.check(&filled).context("the filled buffer is not as expected")?;
    example.seal().context("could not seal the buffer")?;
    let sealed = Buffer { digest: example.digest, hashed_segments: 1, state: SEALED, ..filled };
    example.check(&sealed).context("the sealed buffer is not as expected")?;
    example.close().context("could not close the buffer")
}

struct Example {
    program: Program<Rc<Keypair>>,
    /// Pays for everything and is the buffer's authority.
    authority: Pubkey,
    seed: String,
    buffer: Pubkey,
    payload: Vec<u8>,
    digest: [u8; 32],
}

impl Example {
    fn new(program: Program<Rc<Keypair>>) -> Result<Self> {
        let authority = program.payer();
        // Another buffer in every run.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let seed = format!("example-{}", now.as_millis());
        let buffer = Pubkey::create_with_seed(&authority, &seed, &chunk_buffer::ID)?;
        let payload: Vec<u8> = (0..PAYLOAD_LEN).map(|index| (index % 251) as u8).collect();
        let digest = Sha256::digest(&payload).into();
        Ok(Self { program, authority, seed, buffer, payload, digest })
    }

    /// One transaction: `transfer`, `allocate_with_seed`, `init`.
    fn create(&self) -> Result<()> {
        let Self { authority, seed, buffer, .. } = self;
        let rent_lamports =
            self.program.rpc().get_minimum_balance_for_rent_exemption(ACCOUNT_LEN as usize)?;
        let program = chunk_buffer::ID;
        let transfer = system_instruction::transfer(authority, buffer, rent_lamports);
        let allocate = system_instruction::allocate_with_seed(buffer, authority, seed, ACCOUNT_LEN, &program);
        let accounts = accounts::Init { authority: *authority, buffer: *buffer };
        let seed = seed.as_bytes().to_vec();
        let args = args::Init { seed, payload_len: PAYLOAD_LEN, chunk_size: CHUNK_SIZE };
        // The declared program's instruction goes last.
        let request = self.program.request().instruction(transfer).instruction(allocate);
        request.accounts(accounts).args(args).send()?;
        println!("created buffer {buffer} for {PAYLOAD_LEN} bytes in {CHUNK_COUNT} chunks");
        Ok(())
    }

    fn write(&self, index: u32) -> Result<()> {
        let offset = index * CHUNK_SIZE;
        let end = PAYLOAD_LEN.min(offset + CHUNK_SIZE);
        let data = self.payload[offset as usize..end as usize].to_vec();
        let accounts = accounts::Write { authority: self.authority, buffer: self.buffer };
        self.program.request().accounts(accounts).args(args::Write { offset, data }).send()?;
        println!("wrote chunk {index}: bytes {offset}..{end}");
        Ok(())
    }

    fn seal(&self) -> Result<()> {
        let accounts = accounts::Seal { authority: self.authority, buffer: self.buffer };
        self.program.request().accounts(accounts).args(args::Seal { digest: self.digest }).send()?;
        let digest: String = self.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("sealed with SHA-256 {digest}");
        Ok(())
    }

    /// Reads the buffer and compares its header and its payload.
    fn check(&self, expected: &Buffer) -> Result<()> {
        let account = self.program.rpc().get_account(&self.buffer)?;
        let account_len = account.data.len() as u64;
        ensure!(account.owner == chunk_buffer::ID, "the owner is {}", account.owner);
        ensure!(account_len == ACCOUNT_LEN, "it has {account_len} bytes, not {ACCOUNT_LEN}");
        // `Program::account` would panic: it wants the header of a zero-copy account to be all of its data.
        let (header, rest) = account.data.split_at(PAYLOAD_OFFSET);
        let header = Buffer::try_deserialize(&mut &*header)?;
        ensure!(bytes_of(&header) == bytes_of(expected), "the header is {header:?}, not {expected:?}");
        ensure!(rest.starts_with(&self.payload), "the payload is not what was written");
        println!("read {} of {CHUNK_COUNT} chunks, state {}", header.written_chunks, header.state);
        Ok(())
    }

    fn filled_header(&self) -> Buffer {
        Buffer {
            authority: self.authority,
            digest: [0; 32],
            payload_len: PAYLOAD_LEN,
            chunk_size: CHUNK_SIZE,
            written_chunks: CHUNK_COUNT,
            hashed_segments: 0,
            state: OPEN,
            version: 1,
            reserved: [0; 6],
        }
    }

    fn close(&self) -> Result<()> {
        let Self { authority, buffer, .. } = *self;
        let accounts = accounts::Close { authority, buffer, receiver: authority };
        self.program.request().accounts(accounts).args(args::Close).send()?;
        let rpc = self.program.rpc();
        let left = rpc.get_account_with_commitment(&buffer, rpc.commitment())?.value;
        ensure!(left.is_none(), "buffer {buffer} is still there: {left:?}");
        println!("closed buffer {buffer}");
        Ok(())
    }
}
