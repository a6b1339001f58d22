-- How far a bundle goes, instructions that ride along, buffers by address, and transactions that serve several bundles.
--
-- A CHECK can't be changed, so the tables that have one to change are made anew.

CREATE TABLE new_bundles (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    changeset     INTEGER NOT NULL REFERENCES changesets (id),
    bundle_id     INTEGER NOT NULL,
    mode          TEXT    NOT NULL CHECK (mode IN ('finalize', 'stage', 'undelegate')),
    -- Instructions that ride along, as a Borsh array; NULL if there are none.
    actions       BLOB,
    status        TEXT    NOT NULL CHECK (status IN (
        'accepted', 'preparing', 'committing', 'staged', 'finalizing', 'landed', 'failed', 'superseded')),
    error         TEXT,
    superseded_by INTEGER REFERENCES bundles (id),
    updated_at_ms INTEGER NOT NULL,
    UNIQUE (changeset, bundle_id),
    -- A staged bundle has an error if it could not be finalized.
    CHECK (status = 'staged' OR (status = 'failed') = (error IS NOT NULL)),
    CHECK ((status = 'superseded') = (superseded_by IS NOT NULL))
) STRICT;

INSERT INTO new_bundles (id, changeset, bundle_id, mode, status, error, updated_at_ms)
    SELECT id, changeset, bundle_id, 'finalize', status, error, updated_at_ms FROM bundles;
DROP TABLE bundles;
ALTER TABLE new_bundles RENAME TO bundles;

CREATE INDEX unfinished_bundles ON bundles (id)
    WHERE status IN ('accepted', 'preparing', 'committing', 'finalizing');

CREATE TABLE new_commits (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    bundle        INTEGER NOT NULL REFERENCES bundles (id),
    position      INTEGER NOT NULL,
    account       BLOB    NOT NULL CHECK (length(account) = 32),
    commit_id     INTEGER NOT NULL,
    state_len     INTEGER NOT NULL CHECK (state_len >= 0),
    -- The delegation of the account that the commit is made for, from the first plan on.
    session       INTEGER,
    nonce         INTEGER,
    strategy      TEXT CHECK (strategy IN (
        'inline-v0', 'inline-patch-v0', 'buffer-v0', 'buffer-patch-v0',
        'inline-v0-tables', 'inline-patch-v0-tables', 'buffer-v0-tables', 'buffer-patch-v0-tables',
        'inline-v1', 'inline-patch-v1', 'buffer-v1', 'buffer-patch-v1')),
    rent_lamports INTEGER,
    verified      INTEGER NOT NULL DEFAULT 0 CHECK (verified IN (0, 1)),
    UNIQUE (bundle, position),
    UNIQUE (bundle, account),
    CHECK ((nonce IS NULL) = (session IS NULL)),
    CHECK ((nonce IS NULL) = (strategy IS NULL)),
    CHECK ((nonce IS NULL) = (rent_lamports IS NULL))
) STRICT;

INSERT INTO new_commits SELECT * FROM commits;
DROP TABLE commits;
ALTER TABLE new_commits RENAME TO commits;

CREATE INDEX commits_by_account ON commits (account, id);

-- A transaction belongs to the bundles whose commits it serves: small ones share it.
CREATE TABLE new_transactions (
    id                      INTEGER PRIMARY KEY AUTOINCREMENT,
    stage                   TEXT    NOT NULL CHECK (stage IN ('prepare', 'commit', 'finalize', 'cleanup')),
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

INSERT INTO new_transactions
    SELECT id, stage, signature, last_valid_block_height, status, slot, compute_units, fee_lamports, error
    FROM transactions;
DROP TABLE transactions;
ALTER TABLE new_transactions RENAME TO transactions;

-- Buffers, recorded before they are created, so that each can be found and closed.
CREATE TABLE buffers (
    address    BLOB    PRIMARY KEY CHECK (length(address) = 32),
    commit_row INTEGER NOT NULL REFERENCES commits (id)
) STRICT, WITHOUT ROWID;

CREATE INDEX buffers_by_commit ON buffers (commit_row);
