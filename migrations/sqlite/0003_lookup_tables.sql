-- Address lookup tables, what is in them, whose accounts must stay in them, and every transaction that was signed for them.

CREATE TABLE lookup_tables (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    address           BLOB    NOT NULL UNIQUE CHECK (length(address) = 32),
    authority         BLOB    NOT NULL CHECK (length(authority) = 32),
    -- Made from this store, or found on chain: another process may still need it.
    origin            TEXT    NOT NULL CHECK (origin IN ('created', 'discovered')),
    status            TEXT    NOT NULL
        CHECK (status IN ('creating', 'active', 'frozen', 'deactivating', 'closed')),
    -- To be deactivated and closed, as soon as each of it can be done.
    closing           INTEGER NOT NULL DEFAULT 0 CHECK (closing IN (0, 1)),
    deactivation_slot INTEGER,
    lamports          INTEGER NOT NULL DEFAULT 0,
    -- A slot at which it was not on chain, though it may have been, or may still come.
    absent_since_slot INTEGER,
    unused_since_ms   INTEGER,
    CHECK ((status = 'deactivating') = (deactivation_slot IS NOT NULL)),
    CHECK (status <> 'closed' OR lamports = 0)
) STRICT;

-- What is in a table, in its order. Entries never change, there only come more.
CREATE TABLE lookup_table_entries (
    lookup_table INTEGER NOT NULL REFERENCES lookup_tables (id),
    position     INTEGER NOT NULL CHECK (position BETWEEN 0 AND 255),
    address      BLOB    NOT NULL CHECK (length(address) = 32),
    PRIMARY KEY (lookup_table, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX lookup_table_entries_by_address ON lookup_table_entries (address);

-- Who needs addresses in tables: a bundle, or somebody ahead of time.
CREATE TABLE lookup_reservations (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    bundle INTEGER UNIQUE REFERENCES bundles (id) ON DELETE CASCADE,
    name   TEXT UNIQUE,
    CHECK ((bundle IS NULL) <> (name IS NULL))
) STRICT;

-- An address has as many references as it has rows here.
CREATE TABLE lookup_reservation_keys (
    reservation INTEGER NOT NULL REFERENCES lookup_reservations (id) ON DELETE CASCADE,
    address     BLOB    NOT NULL CHECK (length(address) = 32),
    PRIMARY KEY (reservation, address)
) STRICT, WITHOUT ROWID;

CREATE INDEX lookup_reservation_keys_by_address ON lookup_reservation_keys (address);

-- Every transaction, recorded before it is sent.
CREATE TABLE lookup_table_transactions (
    id                      INTEGER PRIMARY KEY AUTOINCREMENT,
    lookup_table            INTEGER NOT NULL REFERENCES lookup_tables (id),
    step                    TEXT    NOT NULL CHECK (step IN ('create', 'extend', 'deactivate', 'close')),
    signature               BLOB    NOT NULL UNIQUE CHECK (length(signature) = 64),
    last_valid_block_height INTEGER NOT NULL,
    status                  TEXT    NOT NULL CHECK (status IN ('signed', 'landed', 'failed', 'expired')),
    -- The transaction itself, as long as its outcome is unknown: after a restart it is sent again as it is.
    wire                    BLOB,
    slot                    INTEGER,
    error                   TEXT,
    CHECK ((status = 'signed') = (wire IS NOT NULL)),
    CHECK ((status = 'landed') = (slot IS NOT NULL)),
    CHECK ((status = 'failed') = (error IS NOT NULL))
) STRICT;

CREATE INDEX lookup_table_transactions_by_table ON lookup_table_transactions (lookup_table, id);
CREATE INDEX unknown_lookup_table_transactions ON lookup_table_transactions (id) WHERE status = 'signed';
