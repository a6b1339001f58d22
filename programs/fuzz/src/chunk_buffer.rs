//! The buffer program: one instruction on a buffer that the program can have left behind, or on something else.

use chunk_buffer::{
    Buffer, ID, PAYLOAD_OFFSET, SEGMENT_LEN, STATE_OPEN, STATE_SEALED, VERSION, account_len, chunk_count,
};

use crate::input::Input;
use crate::runtime::{Account, Instruction, Key, Outcome, SYSTEM, key, rent, run, sha256};

const AUTHORITY: Key = key(0xa1);
const RECEIVER: Key = key(0xa3);
/// The first eight bytes of a buffer.
const DISCRIMINATOR: &[u8] = <Buffer as anchor_lang::Discriminator>::DISCRIMINATOR;

/// What an input says before the instruction data. Every field is as many bytes as its type.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Zero: the declared accounts. Otherwise how many of them, plus one.
    pub accounts: u8,
    /// Flipped bits of who signs (low four) and what is writable (high four).
    pub flip: u8,
    /// Zero: every account once. Otherwise the low four bits' slot repeats the account of the high four bits' slot.
    pub again: u8,
    /// Who owns the buffer: the program (zero), the system program, or another one.
    pub owner: u8,
    /// Zero: the address that `init` derives from its instruction data.
    pub address: u8,
    /// Zero: the header names the signer.
    pub authority: u8,
    /// 0 = zeroed, 1 = open, 2 = sealed, 3 = of another version, 4 = no buffer of ours.
    pub state: u8,
    /// Zero: the length that fits the header. Otherwise `payload_len` is the account's length.
    pub length: u8,
    /// Of the buffer and of the receiver, see [`lamports`].
    pub lamports: [u8; 2],
    pub payload_len: u16,
    /// Whole segments in front of the payload, at most two.
    pub segments: u8,
    pub chunk_size: u32,
    /// How many segments have been hashed.
    pub hashed: u8,
    /// Every byte of the payload.
    pub fill: u8,
    /// 255: all chunks are written. Otherwise the bits of every byte of the bitmap.
    pub bitmap: u8,
}

impl Plan {
    fn read(input: &mut Input) -> Self {
        Self {
            accounts: input.u8(),
            flip: input.u8(),
            again: input.u8(),
            owner: input.u8(),
            address: input.u8(),
            authority: input.u8(),
            state: input.u8(),
            length: input.u8(),
            lamports: input.array(),
            payload_len: input.u16(),
            segments: input.u8(),
            chunk_size: input.u32(),
            hashed: input.u8(),
            fill: input.u8(),
            bitmap: input.u8(),
        }
    }

    /// The plan as the beginning of an input.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![
            self.accounts,
            self.flip,
            self.again,
            self.owner,
            self.address,
            self.authority,
            self.state,
            self.length,
        ];
        bytes.extend(self.lamports);
        bytes.extend(self.payload_len.to_le_bytes());
        bytes.push(self.segments);
        bytes.extend(self.chunk_size.to_le_bytes());
        bytes.extend([self.hashed, self.fill, self.bitmap]);
        bytes
    }

    fn payload_len(&self) -> u32 {
        // A segment is so long that only one value asks for it: most inputs stay fast.
        let segments = match self.segments {
            0xb1 => 1,
            0xb2 => 2,
            _ => 0,
        };
        segments * SEGMENT_LEN as u32 + u32::from(self.payload_len)
    }

    fn ours(&self) -> bool {
        self.owner == 0
    }

    /// The buffer's data: a valid one if the program owns it, and anything otherwise.
    fn data(&self) -> Vec<u8> {
        let payload_len = self.payload_len();
        // The program never leaves a chunk size of zero behind.
        let chunk_size = if self.ours() { self.chunk_size.max(1) } else { self.chunk_size };
        let fitting = account_len(payload_len, chunk_size.max(1)) as usize;
        let zeroed = self.state.is_multiple_of(5);
        let other_length = self.length != 0 && (zeroed || !self.ours());
        let mut data = vec![0; if other_length { self.payload_len.into() } else { fitting }];
        if zeroed || data.len() < PAYLOAD_OFFSET {
            return data;
        }
        let chunks = chunk_count(payload_len, chunk_size.max(1));
        let (head, rest) = data.split_at_mut(PAYLOAD_OFFSET);
        let payload_end = rest.len().min(payload_len as usize);
        let (payload, bitmap) = rest.split_at_mut(payload_end);
        payload.fill(self.fill);
        bitmap.fill(self.bitmap);
        // Bits past the last chunk are never set.
        if let Some(last) = bitmap.last_mut().filter(|_| !chunks.is_multiple_of(8)) {
            *last &= (1 << (chunks % 8)) - 1;
        }
        let sealed = self.state % 5 == 2;
        let segments = payload.len().div_ceil(SEGMENT_LEN).max(1);
        let written = bitmap.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let hashed = match sealed {
            true => segments,
            // The last segment seals, so an open buffer has hashed fewer.
            false => usize::from(self.hashed) % segments,
        };
        let header = Buffer {
            authority: if self.authority == 0 { AUTHORITY } else { key(self.authority) }.into(),
            digest: digest(payload, hashed),
            payload_len,
            chunk_size,
            written_chunks: written,
            hashed_segments: hashed as u32,
            state: if sealed { STATE_SEALED } else { STATE_OPEN },
            version: if self.state % 5 == 3 { VERSION.wrapping_add(self.hashed) } else { VERSION },
            reserved: [0; 6],
        };
        head[8..].copy_from_slice(bytemuck::bytes_of(&header));
        head[..8].copy_from_slice(if self.state % 5 == 4 { b"Delegate" } else { DISCRIMINATOR });
        data
    }
}

/// The digest of the first `segments` segments; zeroes before the first.
pub fn digest(payload: &[u8], segments: usize) -> [u8; 32] {
    let mut digest = [0; 32];
    for index in 0..segments {
        let start = index * SEGMENT_LEN;
        let segment = &payload[start..payload.len().min(start + SEGMENT_LEN)];
        digest = if index == 0 { sha256(&[segment]) } else { sha256(&[&digest, segment]) };
    }
    digest
}

/// Lamports for an account of `len` bytes.
pub fn lamports(choice: u8, len: usize) -> u64 {
    match choice {
        0 => rent(len),
        1 => 0,
        2 => u64::MAX,
        3 => rent(len) - 1,
        // Enough to grow.
        other => rent(len) + (u64::from(other) << 20),
    }
}

/// Runs an input and checks what came of it.
///
/// # Panics
/// If the program does not hold what it promises.
pub fn check(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let plan = Plan::read(&mut input);
    let data = input.rest();
    let content = plan.data();

    let mut seed = Input(data.get(1..).unwrap_or_default());
    let seed = seed.slice().unwrap_or_default();
    let address = if plan.address == 0 { sha256(&[&AUTHORITY, seed, ID.as_array()]) } else { key(0xa2) };
    let flag = |bit: u8, usual: bool| (plan.flip >> bit & 1 == 1) != usual;
    let accounts = vec![
        Account {
            address: AUTHORITY,
            lamports: lamports(plan.lamports[1], 0),
            signer: flag(0, true),
            writable: flag(4, false),
            ..Account::default()
        },
        Account {
            address,
            owner: match plan.owner {
                0 => *ID.as_array(),
                1 => SYSTEM,
                other => key(other),
            },
            lamports: lamports(plan.lamports[0], content.len()),
            data: content,
            signer: flag(1, false),
            writable: flag(5, true),
            executable: false,
        },
        Account {
            address: RECEIVER,
            lamports: lamports(plan.lamports[1], 0),
            signer: flag(2, false),
            writable: flag(6, true),
            ..Account::default()
        },
    ];
    let declared: usize = if matches!(data.first(), Some(4 | 5)) { 3 } else { 2 };
    let mut choice: Vec<usize> = (0..declared).collect();
    if plan.accounts != 0 {
        choice.truncate(usize::from(plan.accounts) - 1);
    }
    if plan.again != 0 && !choice.is_empty() {
        let slots = choice.len();
        choice[usize::from(plan.again & 15) % slots] = choice[usize::from(plan.again >> 4) % slots];
    }
    let instruction =
        Instruction::new(chunk_buffer::__anchor_dispatch, *ID.as_array(), accounts, &choice, data);
    let outcome = run(instruction);
    if outcome.accepted() {
        accepted(&outcome, data);
    }
    outcome
}

/// A buffer taken apart.
struct Parts<'a> {
    header: Buffer,
    payload: &'a [u8],
    bitmap: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Takes a buffer of the program apart, which must be valid.
    fn of(account: &'a Account) -> Self {
        assert_eq!(account.owner, *ID.as_array());
        let (head, rest) = account.data.split_at(PAYLOAD_OFFSET);
        assert_eq!(&head[..8], DISCRIMINATOR);
        let header: Buffer = bytemuck::pod_read_unaligned(&head[8..]);
        assert_eq!((header.version, header.reserved), (VERSION, [0; 6]));
        assert_ne!(header.chunk_size, 0);
        assert_eq!(account.data.len() as u64, account_len(header.payload_len, header.chunk_size));
        let (payload, bitmap) = rest.split_at(header.payload_len as usize);
        let parts = Self { header, payload, bitmap };
        let chunks = chunk_count(header.payload_len, header.chunk_size);
        let written = bitmap.iter().map(|byte| byte.count_ones()).sum::<u32>();
        assert_eq!(written, header.written_chunks, "the count is not that of the bitmap");
        assert!(
            (chunks as usize..bitmap.len() * 8).all(|chunk| !parts.is_written(chunk)),
            "a bit past the last chunk"
        );
        let segments = payload.len().div_ceil(SEGMENT_LEN).max(1);
        match header.state {
            STATE_OPEN => assert!(header.hashed_segments < segments as u32),
            STATE_SEALED => assert_eq!(header.hashed_segments, segments as u32),
            other => panic!("state {other}"),
        }
        if header.hashed_segments != 0 {
            assert_eq!(
                header.digest,
                digest(payload, header.hashed_segments as usize),
                "not the payload's digest"
            );
        }
        parts
    }

    fn is_written(&self, chunk: usize) -> bool {
        self.bitmap[chunk / 8] >> (chunk % 8) & 1 == 1
    }
}

/// Checks the promises of an accepted instruction.
fn accepted(outcome: &Outcome, data: &[u8]) {
    let mut args = Input(data.get(1..).unwrap_or_default());
    let (authority, old, new) = (outcome.before(0), outcome.before(1), outcome.after(1));
    assert!(authority.signer);
    assert_eq!(old.owner, *ID.as_array(), "another program's account was accepted");
    if data[0] == 1 {
        return init(old, new, &mut args);
    }
    let before = Parts::of(old);
    assert_eq!(before.header.authority.to_bytes(), AUTHORITY, "not the authority");
    let open = before.header.state == STATE_OPEN;
    match data[0] {
        2 => {
            assert!(open);
            let (offset, chunk) = (args.u32(), args.slice().expect("a whole chunk"));
            write(&before, &Parts::of(new), offset, chunk);
        }
        3 => {
            assert!(open);
            seal(&before, &Parts::of(new), &args.array());
        }
        4 => {
            assert_eq!((new.lamports, new.data.len(), new.owner), (0, 0, SYSTEM));
            let (old_receiver, receiver) = (outcome.before(2), outcome.after(2));
            assert_eq!(receiver.lamports, old_receiver.lamports + old.lamports);
        }
        5 => {
            assert!(open);
            let payload_len = args.u32();
            let after = Parts::of(new);
            assert_eq!(after.header.payload_len, payload_len);
            resize(&before, &after);
            assert!(new.lamports >= rent(new.data.len()), "not rent exempt");
            if new.data.len() < old.data.len() {
                assert_eq!(new.lamports, rent(new.data.len()));
            }
        }
        6 => {
            let after = Parts::of(new);
            let authority = args.array();
            assert_ne!(authority, [0; 32]);
            let expected = Buffer { authority: authority.into(), ..before.header };
            assert_eq!(bytemuck::bytes_of(&after.header), bytemuck::bytes_of(&expected));
            assert_eq!((after.payload, after.bitmap), (before.payload, before.bitmap));
        }
        other => panic!("instruction {other} does not exist"),
    }
    let touched: &[usize] = if matches!(data[0], 4 | 5) { &[1, 2] } else { &[1] };
    assert!(!outcome.others_changed(touched));
}

fn init(old: &Account, new: &Account, args: &mut Input) {
    let seed = args.slice().expect("a whole seed");
    assert!(old.data[..8] == [0; 8], "a buffer was made anew");
    assert_eq!(new.address, sha256(&[&AUTHORITY, seed, ID.as_array()]));
    let Parts { header, payload, .. } = Parts::of(new);
    assert_eq!((header.payload_len, header.chunk_size), (args.u32(), args.u32()));
    assert_eq!(header.authority.to_bytes(), AUTHORITY);
    assert_eq!((header.state, header.written_chunks, header.hashed_segments), (STATE_OPEN, 0, 0));
    assert!(payload.iter().all(|byte| *byte == 0));
}

/// The chunk is at its place, its bit is set, and nothing else moved.
fn write(before: &Parts, after: &Parts, offset: u32, chunk: &[u8]) {
    let index = (offset / before.header.chunk_size) as usize;
    let mut payload = before.payload.to_vec();
    payload[offset as usize..offset as usize + chunk.len()].copy_from_slice(chunk);
    assert_eq!(after.payload, payload);
    assert!(chunk.len() as u32 == before.header.chunk_size || offset as usize + chunk.len() == payload.len());
    for other in 0..before.bitmap.len() * 8 {
        assert_eq!(after.is_written(other), before.is_written(other) || other == index);
    }
    let expected = Buffer {
        written_chunks: after.header.written_chunks,
        hashed_segments: if payload == before.payload { before.header.hashed_segments } else { 0 },
        ..before.header
    };
    assert_eq!(bytemuck::bytes_of(&after.header), bytemuck::bytes_of(&expected));
}

/// The next segment is in the digest, and only the named digest seals. The rest is what `Parts::of` checks.
fn seal(before: &Parts, after: &Parts, named: &[u8; 32]) {
    assert_eq!((after.payload, after.bitmap), (before.payload, before.bitmap));
    assert_eq!(after.header.hashed_segments, before.header.hashed_segments + 1);
    if after.header.state == STATE_SEALED {
        assert_eq!(after.header.digest, *named);
    }
}

/// What both lengths have is the same, what is new is zero, and a chunk stays written if it keeps all its bytes.
fn resize(before: &Parts, after: &Parts) {
    let common = before.payload.len().min(after.payload.len());
    assert_eq!(after.payload[..common], before.payload[..common]);
    assert!(after.payload[common..].iter().all(|byte| *byte == 0));
    let size = before.header.chunk_size as usize;
    assert_eq!(after.header.chunk_size as usize, size);
    for chunk in 0..after.payload.len().div_ceil(size) {
        let len = |payload: &[u8]| payload.len().saturating_sub(chunk * size).min(size);
        let whole = len(before.payload) >= len(after.payload);
        let existed = chunk * size < before.payload.len();
        assert_eq!(after.is_written(chunk), whole && existed && before.is_written(chunk), "chunk {chunk}");
    }
    assert_eq!(after.header.hashed_segments, 0);
}
