-- Bundles that failed can be tried again or given up for good, and the store knows whose it is.
--
-- A CHECK can't be changed, so the table is made anew, with its indexes and its triggers.

CREATE TABLE new_bundles (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    changeset     INTEGER NOT NULL REFERENCES changesets (id),
    bundle_id     INTEGER NOT NULL,
    mode          TEXT    NOT NULL CHECK (mode IN ('finalize', 'stage', 'undelegate')),
    -- Instructions that ride along, as a Borsh array; NULL if there are none.
    actions       BLOB,
    status        TEXT    NOT NULL CHECK (status IN (
        'accepted', 'preparing', 'committing', 'staged', 'finalizing', 'landed', 'failed', 'superseded',
        'abandoned')),
    -- Why it failed; an abandoned bundle keeps it.
    error         TEXT,
    superseded_by INTEGER REFERENCES bundles (id),
    updated_at_ms INTEGER NOT NULL,
    -- When it was accepted, or asked for again: the age by which it is given up counts from here.
    asked_at_ms   INTEGER NOT NULL,
    -- Whether it has been staged: what failed after that is its finalization.
    was_staged    INTEGER NOT NULL DEFAULT 0 CHECK (was_staged IN (0, 1)),
    UNIQUE (changeset, bundle_id),
    -- A staged bundle has an error if it could not be finalized.
    CHECK (status = 'staged' OR (status IN ('failed', 'abandoned')) = (error IS NOT NULL)),
    CHECK ((status = 'superseded') = (superseded_by IS NOT NULL))
) STRICT;

INSERT INTO new_bundles
    SELECT bundles.id, changeset, bundle_id, mode, actions, status, error, superseded_by, updated_at_ms,
           created_at_ms,
           mode = 'stage' AND (status IN ('staged', 'finalizing', 'landed')
               OR EXISTS (SELECT 1 FROM bundle_signatures WHERE bundle = bundles.id AND step = 'commit'))
    FROM bundles JOIN changesets ON changesets.id = changeset;
DROP TABLE bundles;
ALTER TABLE new_bundles RENAME TO bundles;

CREATE INDEX unfinished_bundles ON bundles (id)
    WHERE status IN ('accepted', 'preparing', 'committing', 'finalizing');
-- By status, the ones that moved last first; by age alone, status by status.
CREATE INDEX bundles_by_status ON bundles (status, updated_at_ms, id);
CREATE INDEX bundles_by_bundle_id ON bundles (bundle_id, id);
-- Bundles that gave way to one: it is kept as long as they are.
CREATE INDEX bundles_by_successor ON bundles (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TRIGGER bundle_added AFTER INSERT ON bundles BEGIN
    INSERT INTO changeset_counts VALUES (new.changeset, new.status, 1)
        ON CONFLICT DO UPDATE SET bundles = bundles + 1;
    INSERT INTO totals VALUES (new.status, 1) ON CONFLICT DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER bundle_moved AFTER UPDATE OF status ON bundles WHEN old.status <> new.status BEGIN
    UPDATE changeset_counts SET bundles = bundles - 1 WHERE changeset = old.changeset AND status = old.status;
    INSERT INTO changeset_counts VALUES (new.changeset, new.status, 1)
        ON CONFLICT DO UPDATE SET bundles = bundles + 1;
    UPDATE totals SET total = total - 1 WHERE name = old.status;
    INSERT INTO totals VALUES (new.status, 1) ON CONFLICT DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER bundle_removed AFTER DELETE ON bundles BEGIN
    UPDATE changeset_counts SET bundles = bundles - 1 WHERE changeset = old.changeset AND status = old.status;
    UPDATE totals SET total = total - 1 WHERE name = old.status;
END;

-- The cluster and the authority that everything in here is for, from the first start of an engine on.
CREATE TABLE identity (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    genesis_hash BLOB    NOT NULL CHECK (length(genesis_hash) = 32),
    authority    BLOB    NOT NULL CHECK (length(authority) = 32)
) STRICT;
