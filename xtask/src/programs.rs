//! The programs this repository builds.

/// One program crate, a member of the programs' workspace.
pub(crate) struct Program {
    /// The name of the package, as `cargo build --package` takes it.
    pub(crate) package: &'static str,
    /// The name of the library, which names the `.so` file and the IDL.
    pub(crate) library: &'static str,
    /// The folder of the crate, from the root of the repository.
    pub(crate) folder: &'static str,
}

const CHUNK_BUFFER: Program =
    Program { package: "chunk-buffer", library: "chunk_buffer", folder: "programs/chunk-buffer" };

const DELEGATION: Program =
    Program { package: "delegation", library: "delegation", folder: "programs/delegation" };

const OWNER_PROGRAM: Program =
    Program { package: "owner-program", library: "owner_program", folder: "tests/owner-program" };

/// Every program that is built to SBF. The owner program stands in for a user's program in the tests.
pub(crate) const ALL: [Program; 3] = [CHUNK_BUFFER, DELEGATION, OWNER_PROGRAM];

/// The programs whose interface the SDK covers.
pub(crate) const PUBLISHED: [Program; 2] = [CHUNK_BUFFER, DELEGATION];
