-- Changesets, their bundles and commits, and every transaction that was signed for them.
--
-- 64-bit unsigned numbers are stored as the signed integer of the same bits. Addresses and signatures are raw bytes.

CREATE TABLE changesets (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE bundles (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    changeset     INTEGER NOT NULL REFERENCES changesets (id),
    bundle_id     INTEGER NOT NULL,
    status        TEXT    NOT NULL
        CHECK (status IN ('accepted', 'preparing', 'committing', 'landed', 'failed')),
    error         TEXT,
    updated_at_ms INTEGER NOT NULL,
    UNIQUE (changeset, bundle_id),
    CHECK ((status = 'failed') = (error IS NOT NULL))
) STRICT;

-- What is to be done next, without reading what has been.
CREATE INDEX unfinished_bundles ON bundles (id) WHERE status NOT IN ('landed', 'failed');

-- One account of a bundle: the key and the outcome.
CREATE TABLE commits (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    bundle        INTEGER NOT NULL REFERENCES bundles (id),
    position      INTEGER NOT NULL,
    account       BLOB    NOT NULL CHECK (length(account) = 32),
    commit_id     INTEGER NOT NULL,
    state_len     INTEGER NOT NULL CHECK (state_len >= 0),
    -- The delegation of the account that the commit is made for, from the first plan on.
    session       INTEGER,
    nonce         INTEGER,
    strategy      TEXT CHECK (strategy IN ('inline-v0', 'inline-v1', 'buffer-v0', 'buffer-v1')),
    rent_lamports INTEGER,
    verified      INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)),
    UNIQUE (bundle, position),
    UNIQUE (bundle, account),
    CHECK ((nonce IS NULL) = (session IS NULL)),
    CHECK ((nonce IS NULL) = (strategy IS NULL)),
    CHECK ((nonce IS NULL) = (rent_lamports IS NULL))
) STRICT;

CREATE INDEX commits_by_account ON commits (account, id);

-- The states themselves, apart from the keys: reading a status never touches them.
CREATE TABLE commit_values (
    commit_row INTEGER PRIMARY KEY REFERENCES commits (id),
    state      BLOB NOT NULL
) STRICT;

-- Every transaction, recorded before it is sent.
CREATE TABLE transactions (
    id                      INTEGER PRIMARY KEY AUTOINCREMENT,
    bundle                  INTEGER NOT NULL REFERENCES bundles (id),
    stage                   TEXT    NOT NULL CHECK (stage IN ('prepare', 'commit', 'cleanup')),
    signature               BLOB    NOT NULL UNIQUE CHECK (length(signature) = 64),
    last_valid_block_height INTEGER NOT NULL,
    status                  TEXT    NOT NULL CHECK (status IN ('signed', 'landed', 'failed', 'expired')),
    slot                    INTEGER,
    compute_units           INTEGER,
    fee_lamports            INTEGER,
    error                   TEXT,
    CHECK ((status = 'landed') = (slot IS NOT NULL)),
    CHECK ((status = 'failed') = (error IS NOT NULL))
) STRICT;

CREATE INDEX transactions_by_bundle ON transactions (bundle, id);

-- Which commits of its bundle a transaction serves.
CREATE TABLE transaction_commits (
    transaction_row INTEGER NOT NULL REFERENCES transactions (id),
    commit_row      INTEGER NOT NULL REFERENCES commits (id),
    PRIMARY KEY (transaction_row, commit_row)
) STRICT, WITHOUT ROWID;

CREATE INDEX transactions_by_commit ON transaction_commits (commit_row);

-- The on-chain proof of each step that a bundle took.
CREATE TABLE bundle_signatures (
    bundle    INTEGER NOT NULL REFERENCES bundles (id),
    step      TEXT    NOT NULL CHECK (step IN ('commit', 'finalize', 'undelegate')),
    signature BLOB    NOT NULL CHECK (length(signature) = 64),
    PRIMARY KEY (bundle, step)
) STRICT, WITHOUT ROWID;
