-- What people ask for and what retention looks for, without reading what else there is.

-- By status, the ones that moved last first; by age alone, status by status.
CREATE INDEX bundles_by_status ON bundles (status, updated_at_ms, id);
CREATE INDEX bundles_by_bundle_id ON bundles (bundle_id, id);
-- Bundles that gave way to one: it is kept as long as they are.
CREATE INDEX bundles_by_successor ON bundles (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX changesets_by_age ON changesets (created_at_ms, id);

-- How many bundles of each status a changeset has, kept by the triggers below: counting a million takes too long.
CREATE TABLE changeset_counts (
    changeset INTEGER NOT NULL,
    status    TEXT    NOT NULL,
    bundles   INTEGER NOT NULL,
    PRIMARY KEY (changeset, status)
) STRICT, WITHOUT ROWID;

INSERT INTO changeset_counts SELECT changeset, status, count(*) FROM bundles GROUP BY changeset, status;

-- Sums over the whole store, by the name of what is summed; those of bundles by their status.
CREATE TABLE totals (
    name  TEXT    PRIMARY KEY,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals SELECT status, count(*) FROM bundles GROUP BY status;
INSERT INTO totals SELECT 'changesets', count(*) FROM changesets;
INSERT INTO totals SELECT 'commits', count(*) FROM commits;
INSERT INTO totals SELECT 'state_bytes', coalesce(sum(state_len), 0) FROM commits;
INSERT INTO totals SELECT 'transactions', count(*) FROM transactions WHERE status = 'landed';
INSERT INTO totals SELECT 'compute_units', coalesce(sum(compute_units), 0) FROM transactions;
INSERT INTO totals SELECT 'fee_lamports', coalesce(sum(fee_lamports), 0) FROM transactions;

CREATE TRIGGER changeset_added AFTER INSERT ON changesets BEGIN
    UPDATE totals SET total = total + 1 WHERE name = 'changesets';
END;
CREATE TRIGGER changeset_removed AFTER DELETE ON changesets BEGIN
    UPDATE totals SET total = total - 1 WHERE name = 'changesets';
    DELETE FROM changeset_counts WHERE changeset = old.id;
END;
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
CREATE TRIGGER commit_added AFTER INSERT ON commits BEGIN
    UPDATE totals SET total = total + 1 WHERE name = 'commits';
    UPDATE totals SET total = total + new.state_len WHERE name = 'state_bytes';
END;
CREATE TRIGGER commit_removed AFTER DELETE ON commits BEGIN
    UPDATE totals SET total = total - 1 WHERE name = 'commits';
    UPDATE totals SET total = total - old.state_len WHERE name = 'state_bytes';
END;
CREATE TRIGGER transaction_settled AFTER UPDATE OF status, compute_units, fee_lamports ON transactions BEGIN
    UPDATE totals SET total = total + (new.status = 'landed') - (old.status = 'landed') WHERE name = 'transactions';
    UPDATE totals SET total = total + coalesce(new.compute_units, 0) - coalesce(old.compute_units, 0)
        WHERE name = 'compute_units';
    UPDATE totals SET total = total + coalesce(new.fee_lamports, 0) - coalesce(old.fee_lamports, 0)
        WHERE name = 'fee_lamports';
END;
CREATE TRIGGER transaction_removed AFTER DELETE ON transactions BEGIN
    UPDATE totals SET total = total - (old.status = 'landed') WHERE name = 'transactions';
    UPDATE totals SET total = total - coalesce(old.compute_units, 0) WHERE name = 'compute_units';
    UPDATE totals SET total = total - coalesce(old.fee_lamports, 0) WHERE name = 'fee_lamports';
END;
