-- Entries of the audit log are never changed. The oldest ones may be removed once they are older than their retention
-- period, in the transaction that appends the entry which reports it: the action `audit.remove` with the sequence number
-- and the hash of the last removed entry. The chain of the remaining entries begins at that hash.
DROP TRIGGER "audit_log_append_only" ON "audit_log";
CREATE TRIGGER "audit_log_append_only" BEFORE UPDATE OR TRUNCATE ON "audit_log"
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();

CREATE FUNCTION audit_log_removes_old() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last record;
    report record;
BEGIN
    SELECT seq, hash INTO last FROM removed ORDER BY seq DESC LIMIT 1;
    SELECT xmin AS made_by, actor, action, detail INTO report FROM audit_log ORDER BY seq DESC LIMIT 1;
    IF report.made_by IS DISTINCT FROM pg_current_xact_id()::xid
        OR report.actor <> 'system' OR report.action <> 'audit.remove' THEN
        RAISE EXCEPTION 'audit_log is append-only: the transaction has not appended an entry that reports the removal';
    END IF;
    IF report.detail -> 'last_seq' IS DISTINCT FROM to_jsonb(last.seq)
        OR report.detail -> 'last_hash' IS DISTINCT FROM to_jsonb(last.hash) THEN
        RAISE EXCEPTION 'audit_log is append-only: the last removed entry is not the reported one';
    END IF;
    IF EXISTS (SELECT FROM audit_log WHERE seq <= last.seq) THEN
        RAISE EXCEPTION 'audit_log is append-only: only the oldest entries can be removed';
    END IF;
    IF COALESCE((report.detail ->> 'days')::int, 0) < 30 OR EXISTS (
        SELECT FROM removed WHERE at >= now() - make_interval(hours => 24 * (report.detail ->> 'days')::int)) THEN
        RAISE EXCEPTION 'audit_log is append-only: an entry is not older than the retention period, at least 30 days';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER "audit_log_removes_old" AFTER DELETE ON "audit_log" REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_removes_old();
