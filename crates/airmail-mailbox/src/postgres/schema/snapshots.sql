-- Version 2: each statement that reads slots takes its snapshot behind its locks.
--
-- `empty` moves what is alive in a slot and truncates it. A truncation is seen by older snapshots
-- too, and what was moved is not: a statement whose snapshot is older than the end of `empty`, and
-- that waits for its lock, finds a message in neither place. The statements of a volatile function
-- lock first, and look then; those of a stable one look with their caller's snapshot. (`look_up`
-- becomes a part of the statement that calls it, which locks first, too.)

ALTER FUNCTION airmail.heads(int[], int[], bigint[]) VOLATILE;
ALTER FUNCTION airmail.peek_many(int[], int[], int[], int[], bigint[]) VOLATILE;
ALTER FUNCTION airmail.find_from(int, int) VOLATILE;
ALTER FUNCTION airmail.queues_for(int) VOLATILE;
ALTER FUNCTION airmail.peek(text, text, int, boolean) VOLATILE;

-- One statement, as a message that is on its way from one table to the other is in one of them for
-- each snapshot.
CREATE OR REPLACE FUNCTION airmail.counts(
    wanted int, OUT ready bigint, OUT delayed bigint, OUT leased bigint)
    LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM airmail.check_queue(wanted);
    SELECT count(*) FILTER (WHERE NOT c.is_later),
           count(*) FILTER (WHERE c.is_later AND c.lease IS NULL),
           count(*) FILTER (WHERE c.is_later AND c.lease IS NOT NULL)
    INTO ready, delayed, leased
    FROM (SELECT false AS is_later, NULL::bigint AS lease FROM airmail.ready r
          WHERE r.queue = wanted AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp())
          UNION ALL
          SELECT true, l.lease FROM airmail.later l WHERE l.queue = wanted) c;
END $$;

-- Removes messages of a queue, or to and from an account, that were sent before. One that is on its
-- way from one table to the other is missed there; so this goes on until one snapshot of both shows
-- none.
CREATE OR REPLACE FUNCTION airmail.remove_all(of_queue int, of_account int) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    last_id bigint := (SELECT last_value FROM airmail.message_id);
    removed bigint := 0;
    n bigint;
BEGIN
    LOOP
        DELETE FROM airmail.later l
        WHERE l.id <= last_id
          AND (l.queue = of_queue OR l.sender = of_account OR l.receiver = of_account);
        GET DIAGNOSTICS n = ROW_COUNT;
        removed := removed + n;
        DELETE FROM airmail.ready r
        WHERE r.id <= last_id
          AND (r.queue = of_queue OR r.sender = of_account OR r.receiver = of_account);
        GET DIAGNOSTICS n = ROW_COUNT;
        removed := removed + n;
        EXIT WHEN NOT EXISTS (
                SELECT FROM airmail.later l
                WHERE l.id <= last_id
                  AND (l.queue = of_queue OR l.sender = of_account OR l.receiver = of_account))
            AND NOT EXISTS (
                SELECT FROM airmail.ready r
                WHERE r.id <= last_id
                  AND (r.queue = of_queue OR r.sender = of_account OR r.receiver = of_account));
    END LOOP;
    RETURN removed;
END $$;
