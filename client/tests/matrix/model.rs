//! What every cell must come to, worked out from the chain's limits and the wire format alone.
//!
//! Nothing here asks the planner: sizes are sums of field lengths (`docs/programs.md` has them), the best of all forms is
//! looked for by trying them all, and what is best is said once more, in [`Rank`].

use std::fmt;

use committor_client::{CommitMode, types::TransactionVersion};

/// Accounts that a transaction may lock.
const MAX_LOCKS: usize = 64;
/// Instructions in a transaction's trace, called ones included.
const MAX_INSTRUCTIONS: usize = 64;
/// What an account grows by in one instruction, and a record on its way back.
const MAX_GROWTH: usize = 10_240;
/// Bytes that one transaction can hash for `seal`: half a compute unit a byte, a tenth for the margin, 1.4 million units.
const MAX_HASHED: usize = 2_500_000;
/// Steps of growth in one transaction ahead of the committing one.
const STEPS_AHEAD: usize = 50;
/// A table has to be made, and counts from the next slot on.
const ROUNDS_FOR_TABLES: usize = 2;

/// One cell: a bundle of `count` accounts that all have `old_len` bytes and get `len` new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    pub len: usize,
    pub old_len: usize,
    pub count: usize,
    pub version: TransactionVersion,
    pub mode: CommitMode,
    /// Whether somebody else than the authority pays.
    pub own_payer: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { len, old_len, count, version, mode, own_payer } = self;
        write!(f, "{} of {count} × {old_len}→{len} bytes in {version}", mode.as_str())?;
        if *own_payer { f.write_str(", another payer") } else { Ok(()) }
    }
}

/// What a cell must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    Lands(Way),
    /// Even with every state in a buffer, and with nothing in the transaction that could be done elsewhere, it breaks a
    /// limit: which, and by how much.
    Refused(String),
}

/// How a bundle gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How many of its accounts go through buffers.
    pub buffers: usize,
    /// Whether the committing transaction uses lookup tables.
    pub tables: bool,
    /// Transactions until it is applied or staged, and its buffers are closed if they can be. Those that make lookup
    /// tables don't count.
    pub transactions: usize,
    /// What applying it takes once it is staged.
    pub finalize: Option<Finalize>,
}

/// How what is staged gets applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finalize {
    pub tables: bool,
    pub transactions: usize,
}

/// Less is better, and the first difference decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    half_grown: bool,
    rounds: usize,
    tables: bool,
    buffers: usize,
    transactions: usize,
}

/// A transaction, as far as its length and its limits are concerned.
#[derive(Clone, Debug, Default)]
struct Shape {
    /// Accounts and bytes of data of each instruction.
    instructions: Vec<(usize, usize)>,
    signers: usize,
    /// Programs that it calls itself.
    programs: usize,
    /// Other accounts, which a lookup table can stand for.
    others: usize,
    /// Instructions that its instructions call.
    called: usize,
    /// Bytes that it hashes.
    hashed: usize,
}

impl Shape {
    fn new(cell: &Cell) -> Self {
        // v0 names its limits in two instructions of a program, v1 in its header.
        let programs = usize::from(cell.version == TransactionVersion::V0);
        Self { signers: 1 + usize::from(cell.own_payer), programs, ..Self::default() }
    }

    fn add(&mut self, times: usize, accounts: usize, data: usize) {
        self.instructions.extend(std::iter::repeat_n((accounts, data), times));
    }

    fn addresses(&self) -> usize {
        self.signers + self.programs + self.others
    }

    fn len(&self, version: TransactionVersion, tables: bool) -> usize {
        let signatures = 64 * self.signers;
        match version {
            TransactionVersion::V1 => {
                let instructions: usize =
                    self.instructions.iter().map(|(accounts, data)| 4 + accounts + data).sum();
                42 + signatures + 32 * self.addresses() + 2 * 4 + instructions
            }
            TransactionVersion::V0 => {
                // Lengths below 128 take a byte, longer ones two.
                let compact = |len: usize| if len < 128 { 1 } else { 2 };
                let instructions: usize = self
                    .instructions
                    .iter()
                    .map(|(accounts, data)| 2 + accounts + compact(*data) + data)
                    .sum();
                let limits = 2 * (3 + 5);
                let accounts = match tables {
                    // The table's address, and two lists of one byte per account.
                    true => 32 * (self.signers + self.programs) + 32 + 2 + self.others,
                    false => 32 * self.addresses(),
                };
                let [
                    signature_count,
                    version,
                    header,
                    account_count,
                    blockhash,
                    instruction_count,
                    table_count,
                ] = [1, 1, 3, 1, 32, 1, 1];
                let fixed = signature_count
                    + version
                    + header
                    + account_count
                    + blockhash
                    + instruction_count
                    + table_count;
                fixed + signatures + accounts + limits + instructions
            }
        }
    }

    fn fits(&self, version: TransactionVersion, tables: bool) -> bool {
        self.hashed <= MAX_HASHED && self.broken(version, tables).is_none()
    }

    /// The first limit that is broken.
    fn broken(&self, version: TransactionVersion, tables: bool) -> Option<String> {
        let limits = if version == TransactionVersion::V0 { 2 } else { 0 };
        let max_len = if version == TransactionVersion::V0 { 1_232 } else { 4_096 };
        let found = [
            ("accounts locked by a transaction", self.addresses(), MAX_LOCKS),
            (
                "instructions of a transaction",
                self.instructions.len() + limits + self.called,
                MAX_INSTRUCTIONS,
            ),
            ("bytes of a transaction", self.len(version, tables), max_len),
        ];
        let (limit, value, max) = found.into_iter().find(|(_, value, max)| value > max)?;
        Some(format!("{value} {limit}, at most {max} are allowed"))
    }
}

/// What one buffer takes before it can be sealed.
#[derive(Clone, Copy, Debug)]
struct Upload {
    rounds: usize,
    transactions: usize,
}

impl Cell {
    /// What the cell must come to.
    pub fn expected(&self) -> Expected {
        let mut ways = Vec::new();
        for form in Form::all(self) {
            if let Some(rank) = self.try_form(&form) {
                ways.push(rank);
            }
        }
        let Some(best) = ways.into_iter().min() else {
            let tables = self.version == TransactionVersion::V0;
            let most_spread =
                Form { buffers: self.count, tables, grow: false, upload: false, seal: false, close: false };
            let broken = self.commit(&most_spread).broken(self.version, tables);
            return Expected::Refused(broken.unwrap_or_default());
        };
        let finalize = match self.mode {
            CommitMode::Stage => match self.finalize() {
                Ok(finalize) => Some(finalize),
                // What could never be applied is not staged either.
                Err(broken) => return Expected::Refused(broken),
            },
            CommitMode::Finalize | CommitMode::Undelegate => None,
        };
        Expected::Lands(Way {
            buffers: best.buffers,
            tables: best.tables,
            transactions: best.transactions,
            finalize,
        })
    }

    fn growth_steps(&self) -> usize {
        self.len.saturating_sub(self.old_len).div_ceil(MAX_GROWTH)
    }

    /// Transactions and rounds of growth ahead of the committing transaction, which itself grows by a step.
    fn growth_ahead(&self) -> (usize, usize) {
        let transactions = self.growth_steps().saturating_sub(1).div_ceil(STEPS_AHEAD);
        (transactions, transactions.min(2))
    }

    /// Rent and growth of all accounts, in the transaction that applies the states.
    fn add_growth(&self, shape: &mut Shape, inside: bool) {
        let steps = self.growth_steps();
        if steps > 0 && (inside || steps == 1) {
            shape.programs += 1;
            shape.add(self.count, 2, 12);
            shape.add(self.count * (steps - 1), 3, 5);
        }
    }

    fn upload(&self) -> Upload {
        let room = |shape: &Shape| {
            let max = if self.version == TransactionVersion::V0 { 1_232 } else { 4_096 };
            // In v0 the length of a chunk takes two bytes, of which `len` counts one.
            max - shape.len(self.version, false) - usize::from(self.version == TransactionVersion::V0)
        };
        let mut alone = Shape { others: 1, ..Shape::new(self) };
        alone.programs += 1;
        alone.add(1, 2, 9);
        let mut riding = alone.clone();
        riding.programs += 1;
        riding.add(1, 2, 12);
        riding.add(1, 2, 116);
        riding.add(1, 2, 45);
        let (alone, riding) = (self.len.div_ceil(room(&alone)), self.len.div_ceil(room(&riding)));
        // Create with the first chunk on board, or alone.
        let transactions = if self.len == 0 { 1 } else { riding.min(1 + alone) };
        Upload { rounds: if transactions == 1 { 1 } else { 2 }, transactions }
    }

    fn commit(&self, form: &Form) -> Shape {
        let mut shape = Shape::new(self);
        let inline = self.count - form.buffers;
        shape.programs += 1;
        shape.others += 2 * self.count + form.buffers;
        if self.mode != CommitMode::Stage {
            self.add_growth(&mut shape, form.grow);
        }
        if form.upload {
            shape.programs += 1;
            for (accounts, data) in [(2, 12), (2, 116), (2, 45)] {
                shape.add(form.buffers, accounts, data);
            }
            // One chunk: more of them fit no transaction.
            shape.add(if self.len == 0 { 0 } else { form.buffers }, 2, 9 + self.len);
        }
        if form.seal {
            shape.add(form.buffers, 2, 33);
            shape.hashed += form.buffers * self.len;
        }
        if form.close {
            shape.add(form.buffers, 3, 1);
        }
        if form.buffers > 0 && (form.upload || form.seal || form.close) {
            shape.programs += 1;
        }
        match self.mode {
            CommitMode::Finalize => {
                shape.add(inline, 3, 29 + self.len);
                shape.add(form.buffers, 4, 26);
            }
            CommitMode::Stage => shape.add(form.buffers, 4, 26),
            CommitMode::Undelegate => {
                shape.add(inline, 3, 29 + self.len);
                shape.add(inline, 5, 1);
                shape.add(form.buffers, 6, 25);
                shape.called += self.count;
                // The owner program is called, but not by the transaction. The rent payer is the authority.
                shape.others += 1;
            }
        }
        shape
    }

    fn try_form(&self, form: &Form) -> Option<Rank> {
        let too_long = self.mode == CommitMode::Undelegate && self.len > MAX_GROWTH;
        if (too_long && form.buffers < self.count) || !self.commit(form).fits(self.version, form.tables) {
            return None;
        }
        let upload = self.upload();
        let (growth_transactions, growth_rounds) =
            if form.grow || self.mode == CommitMode::Stage { (0, 0) } else { self.growth_ahead() };
        let uploads = if form.upload { 0 } else { form.buffers };
        let upload_rounds = if uploads > 0 { upload.rounds } else { 0 };
        let seals = if form.seal { 0 } else { form.buffers };
        let closes = if form.close || self.mode == CommitMode::Stage { 0 } else { form.buffers };
        Some(Rank {
            half_grown: growth_rounds > 0,
            rounds: upload_rounds.max(growth_rounds)
                + usize::from(seals > 0)
                + 1
                + if form.tables { ROUNDS_FOR_TABLES } else { 0 },
            tables: form.tables,
            buffers: form.buffers,
            transactions: uploads * upload.transactions
                + self.count * growth_transactions
                + seals
                + 1
                + closes,
        })
    }

    /// Everything in one transaction if it fits; else the buffers are closed afterwards, else the accounts grow before.
    fn finalize(&self) -> Result<Finalize, String> {
        let mut broken = None;
        let tables = if self.version == TransactionVersion::V0 { &[false, true][..] } else { &[false] };
        for tables in tables.iter().copied() {
            for (grow, close) in [(true, true), (true, false), (false, true), (false, false)] {
                let mut shape = Shape::new(self);
                shape.programs += 1 + usize::from(close);
                shape.others += 3 * self.count;
                self.add_growth(&mut shape, grow);
                shape.add(self.count, 4, 1);
                shape.add(if close { self.count } else { 0 }, 3, 1);
                broken = shape.broken(self.version, tables);
                if broken.is_none() {
                    let closes = if close { 0 } else { self.count };
                    let growth = if grow { 0 } else { self.count * self.growth_ahead().0 };
                    return Ok(Finalize { tables, transactions: 1 + closes + growth });
                }
            }
        }
        Err(broken.unwrap_or_default())
    }
}

/// What rides in the committing transaction.
#[derive(Clone, Copy, Debug)]
struct Form {
    buffers: usize,
    tables: bool,
    grow: bool,
    upload: bool,
    seal: bool,
    close: bool,
}

impl Form {
    fn all(cell: &Cell) -> Vec<Self> {
        let stages = cell.mode == CommitMode::Stage;
        let mut forms = Vec::new();
        for buffers in if stages { cell.count..=cell.count } else { 0..=cell.count } {
            for bits in 0..32u8 {
                let [tables, grow, upload, seal, close] = [0, 1, 2, 3, 4].map(|bit| bits >> bit & 1 == 1);
                let form = Self { buffers, tables, grow, upload, seal, close };
                // What is staged is still needed; what is created in one transaction is sealed there as well.
                let makes_sense = if stages { !close && (seal || !upload) } else { !upload };
                if makes_sense && (!tables || cell.version == TransactionVersion::V0) {
                    forms.push(form);
                }
            }
        }
        forms
    }
}

#[test]
fn the_model_says_what_the_documentation_says() {
    use CommitMode::{Finalize, Stage, Undelegate};
    use TransactionVersion::{V0, V1};
    let cell = |len, count, version, mode| Cell { len, old_len: len, count, version, mode, own_payer: false };
    let comes_to = |len, count, version, mode| match cell(len, count, version, mode).expected() {
        Expected::Lands(Way { buffers, tables, transactions, .. }) => (buffers, tables, transactions),
        Expected::Refused(limit) => panic!("{limit}"),
    };
    // The longest inline states.
    for (version, room) in [(V0, 916), (V1, 3_818)] {
        assert_eq!(comes_to(room, 1, version, Finalize), (0, false, 1));
        assert_eq!(comes_to(room + 1, 1, version, Finalize), (1, false, 3));
    }
    assert_eq!(comes_to(10_240, 1, V1, Finalize), (1, false, 4));
    assert_eq!(comes_to(10_240, 1, V0, Finalize), (1, false, 13));
    assert_eq!(comes_to(82, 5, V0, Finalize), (0, false, 1));
    assert!(comes_to(82, 12, V0, Finalize).1);
    assert_eq!(comes_to(0, 21, V1, Undelegate), (0, false, 1));
    // 17 transactions of 3,856 bytes and one that creates the buffer, for each.
    assert_eq!(comes_to(65_536, 20, V1, Finalize), (20, false, 20 * 18 + 1));
    assert_eq!(comes_to(82, 1, V1, Stage), (1, false, 1));
    for mode in CommitMode::ALL {
        assert!(matches!(cell(65_536, 21, V1, mode).expected(), Expected::Refused(_)));
    }
}
