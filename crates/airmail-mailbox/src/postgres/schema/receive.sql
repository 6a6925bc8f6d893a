-- Receiving: `take_many` removes or leases, `peek_many` only looks. What one answer holds is bounded
-- in bytes too: the oldest that have 4 MiB (4194304) together, but one for each who asks in any case.

-- Whether a message is the next of its key: no earlier one of the key is there, and none is at a
-- reader or waits to come back from one. Sees what its caller's statement sees, which is what makes
-- it right: an earlier one that another transaction is taking is still there for that statement.
CREATE FUNCTION airmail.is_next(of_queue int, of_receiver int, of_key text, of_id bigint)
RETURNS boolean
    LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
            SELECT FROM airmail.ready r
            WHERE r.queue = of_queue AND r.receiver = of_receiver AND r.key = of_key AND r.id < of_id)
       AND NOT EXISTS (
            SELECT FROM airmail.later l
            WHERE l.queue = of_queue AND l.receiver = of_receiver AND l.key = of_key
              AND l.deliveries > 0)
$$;

-- Hands out the oldest that each request may have. No row is handed out twice: each is locked, one
-- that another has locked is passed over, and it leaves `ready` in the same transaction. Requests
-- of one call for the same (queue, receiver) are added up: what comes back is shared out by who
-- asks, in their order.
--   readers: who asks. receivers: the same, or 0 for broadcasts. lows: places below this, down to
--   0, are known to be empty. lease_ms: null removes.
-- A request that cannot be has a row with `at` and `fault`: 'queue' or 'reader'.
CREATE FUNCTION airmail.take_many(
    queues int[], readers int[], receivers int[], counts int[], lows bigint[], lease_ms bigint)
RETURNS TABLE (
    at int, fault text, id bigint, queue int, sender int, receiver int, priority smallint,
    deliveries int, lease bigint, created_at timestamptz, expires_at timestamptz, key text,
    origin int, content bytea)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- Requests for which there is something, then one of them for each line; and those that cannot
    -- be, negative where the queue is missing.
    found int[];
    faulty int[];
    wanted int[];
    askers int[];
    n int;
BEGIN
    -- Most looks find nothing, and then this is all: what is below takes several times as long. It
    -- says of each request: 1 something is there, 0 nothing, -1 there is no such queue, -2 no such
    -- reader. Where there are messages, there is the queue; but anybody may ask for broadcasts.
    -- Not by EXISTS: that would be made a hash of all there are.
    SELECT array_agg(l.at) FILTER (WHERE l.what = 1),
           array_agg(CASE l.what WHEN -1 THEN -l.at ELSE l.at END) FILTER (WHERE l.what < 0)
    INTO found, faulty
    FROM (SELECT u.at,
                 CASE WHEN u.receiver = 0 AND (
                          SELECT a.id FROM airmail.account a WHERE a.id = u.reader) IS NULL THEN -2
                      WHEN (SELECT 1 FROM airmail.ready r
                            WHERE r.receiver = u.receiver AND r.queue = u.queue AND r.place >= u.low
                            LIMIT 1) = 1 THEN 1
                      WHEN (SELECT 1 FROM airmail.ready r
                            WHERE r.receiver = u.receiver AND r.queue = u.queue AND r.place < 0
                            LIMIT 1) = 1 THEN 1
                      WHEN (SELECT q.id FROM airmail.queue q WHERE q.id = u.queue) IS NULL THEN -1
                      WHEN (SELECT a.id FROM airmail.account a WHERE a.id = u.reader) IS NULL THEN -2
                      ELSE 0 END AS what
          FROM unnest(queues, readers, receivers, lows) WITH ORDINALITY
              u (queue, reader, receiver, low, at) OFFSET 0) l;
    IF faulty IS NOT NULL THEN
        FOREACH n IN ARRAY faulty LOOP
            at := abs(n);
            fault := CASE WHEN n < 0 THEN 'queue' ELSE 'reader' END;
            RETURN NEXT;
        END LOOP;
    END IF;
    IF found IS NULL THEN
        RETURN;
    END IF;
    IF cardinality(found) > 1 THEN
        SELECT array_agg(l.first), array_agg(l.wanted), array_agg(l.askers) INTO found, wanted, askers
        FROM (SELECT min(u.at) AS first, sum(counts[u.at])::int AS wanted, count(*)::int AS askers
              FROM unnest(found) u (at) GROUP BY queues[u.at], receivers[u.at]) l;
    END IF;
    FOR line IN 1..cardinality(found) LOOP
        n := found[line];
        RETURN QUERY
        WITH oldest AS MATERIALIZED (
            SELECT * FROM (
                SELECT r.slot, r.ctid AS tid, r.id, r.place FROM airmail.ready r
                WHERE r.receiver = receivers[n] AND r.queue = queues[n] AND r.place < 0
                  AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp())
                  AND (r.key IS NULL OR airmail.is_next(r.queue, r.receiver, r.key, r.id))
                ORDER BY r.place LIMIT coalesce(wanted[line], counts[n]) FOR UPDATE SKIP LOCKED) before
            UNION ALL
            SELECT * FROM (
                SELECT r.slot, r.ctid AS tid, r.id, r.place FROM airmail.ready r
                WHERE r.receiver = receivers[n] AND r.queue = queues[n] AND r.place >= lows[n]
                  AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp())
                  AND (r.key IS NULL OR airmail.is_next(r.queue, r.receiver, r.key, r.id))
                ORDER BY r.place LIMIT coalesce(wanted[line], counts[n]) FOR UPDATE SKIP LOCKED) fresh
            LIMIT coalesce(wanted[line], counts[n])
        ), sized AS (
            SELECT o.slot, o.tid, m.created_at, m.queue AS origin, m.content,
                   row_number() OVER oldest AS nth, sum(octet_length(m.content)) OVER oldest AS bytes
            FROM oldest o JOIN airmail.message m ON m.slot = o.slot AND m.id = o.id
            WINDOW oldest AS (ORDER BY o.place ROWS UNBOUNDED PRECEDING)
        ), taken AS (
            DELETE FROM airmail.ready r USING sized s
            WHERE r.slot = s.slot AND r.ctid = s.tid
              AND (s.nth <= coalesce(askers[line], 1) OR s.bytes <= 4194304)
            RETURNING r.*, s.created_at, s.origin, s.content,
                      CASE WHEN lease_ms IS NOT NULL THEN nextval('airmail.lease_id') END AS lease,
                      -- Removed: the next of the key may go now.
                      CASE WHEN lease_ms IS NULL AND r.key IS NOT NULL
                           THEN airmail.ring(ARRAY[r.queue], ARRAY[r.receiver]) END AS rung
        ), leased AS (
            INSERT INTO airmail.later
                (slot, priority, deliveries, queue, sender, receiver, id, due_at, lease, expires_at,
                 key)
            SELECT t.slot, t.priority, t.deliveries + 1, t.queue, t.sender, t.receiver, t.id,
                   clock_timestamp() + lease_ms * interval '1 millisecond', t.lease, t.expires_at, t.key
            FROM taken t WHERE t.lease IS NOT NULL
        )
        SELECT NULL::int, NULL::text, t.id, t.queue, t.sender, t.receiver, t.priority,
               t.deliveries + 1, t.lease, t.created_at, t.expires_at, t.key, t.origin, t.content
        FROM taken t ORDER BY t.place;
    END LOOP;
END $$;

-- Undoes a removal whose reader was gone before it heard of it. What was sent is still in its slot;
-- if that was emptied in this moment, the message is lost, as a removal allows.
CREATE FUNCTION airmail.restore_many(
    ids bigint[], queues int[], deliveries int[], expires_us bigint[])
RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    receivers int[];
BEGIN
    WITH restored AS (
        INSERT INTO airmail.ready
            (slot, priority, deliveries, queue, sender, receiver, place, id, expires_at, key)
        SELECT m.slot, m.priority, u.deliveries, u.queue, m.sender, m.receiver,
               airmail.place_of(m.id, m.priority, false), m.id,
               to_timestamp(0) + u.expires_us * interval '1 microsecond', m.key
        FROM unnest(ids, queues, deliveries, expires_us) u (id, queue, deliveries, expires_us)
            JOIN airmail.message m ON m.id = u.id
        RETURNING queue, receiver)
    SELECT array_agg(r.queue), array_agg(r.receiver) INTO queues, receivers FROM restored r;
    PERFORM airmail.ring(queues, receivers);
END $$;

-- The oldest that each request could be handed out now, without removing it.
CREATE FUNCTION airmail.peek_many(
    queues int[], readers int[], receivers int[], counts int[], lows bigint[])
RETURNS TABLE (
    at int, fault text, id bigint, queue int, sender int, receiver int, priority smallint,
    deliveries int, lease bigint, created_at timestamptz, expires_at timestamptz, key text,
    origin int, content bytea)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    asked_at timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT u.*,
               CASE WHEN (SELECT q.id FROM airmail.queue q WHERE q.id = u.queue) IS NULL THEN 'queue'
                    WHEN (SELECT a.id FROM airmail.account a WHERE a.id = u.reader) IS NULL
                    THEN 'reader' END AS fault
        FROM unnest(queues, readers, receivers, counts, lows) WITH ORDINALITY
            u (queue, reader, receiver, count, low, at)
    )
    SELECT a.at::int, a.fault, p.id, p.queue, p.sender, p.receiver, p.priority, p.deliveries,
           NULL::bigint, p.created_at, p.expires_at, p.key, p.origin, p.content
    FROM asked a
        LEFT JOIN LATERAL (
            SELECT s.*, m.created_at, m.queue AS origin, m.content,
                   row_number() OVER oldest AS nth, sum(octet_length(m.content)) OVER oldest AS bytes
            FROM (
            SELECT * FROM (
                SELECT r.* FROM airmail.ready r
                WHERE r.receiver = a.receiver AND r.queue = a.queue AND r.place < 0
                  AND (r.expires_at IS NULL OR r.expires_at > asked_at)
                  AND (r.key IS NULL OR airmail.is_next(r.queue, r.receiver, r.key, r.id))
                ORDER BY r.place LIMIT a.count) before
            UNION ALL
            SELECT * FROM (
                SELECT r.* FROM airmail.ready r
                WHERE r.receiver = a.receiver AND r.queue = a.queue AND r.place >= a.low
                  AND (r.expires_at IS NULL OR r.expires_at > asked_at)
                  AND (r.key IS NULL OR airmail.is_next(r.queue, r.receiver, r.key, r.id))
                ORDER BY r.place LIMIT a.count) fresh
            LIMIT a.count) s
                JOIN airmail.message m ON m.slot = s.slot AND m.id = s.id
            WINDOW oldest AS (ORDER BY s.place ROWS UNBOUNDED PRECEDING)) p ON a.fault IS NULL
    WHERE (p.id IS NOT NULL AND (p.nth = 1 OR p.bytes <= 4194304)) OR a.fault IS NOT NULL;
END $$;

-- One message, by its id, wherever it is; no row: it is gone. `leased`: somebody has it.
CREATE FUNCTION airmail.look_up(wanted bigint)
RETURNS TABLE (
    at int, fault text, id bigint, queue int, sender int, receiver int, priority smallint,
    deliveries int, lease bigint, created_at timestamptz, expires_at timestamptz, key text,
    origin int, content bytea)
    LANGUAGE sql STABLE AS $$
    SELECT 1, NULL::text, s.id, s.queue, s.sender, s.receiver, s.priority, s.deliveries,
           NULL::bigint, m.created_at, s.expires_at, s.key, m.queue, m.content
    FROM airmail.message m JOIN (
        SELECT r.slot, r.id, r.queue, r.sender, r.receiver, r.priority, r.deliveries, r.expires_at,
               r.key
        FROM airmail.message n JOIN airmail.ready r
            ON r.receiver = n.receiver AND r.sender = n.sender AND r.id = n.id
        WHERE n.id = wanted
        UNION ALL
        SELECT l.slot, l.id, l.queue, l.sender, l.receiver, l.priority, l.deliveries, l.expires_at,
               l.key
        FROM airmail.later l WHERE l.id = wanted) s ON s.slot = m.slot AND s.id = m.id
    WHERE m.id = wanted
$$;

-- The oldest message of `from_sender` to `for_reader`, in any queue, that could be handed out.
CREATE FUNCTION airmail.find_from(for_reader int, from_sender int)
RETURNS TABLE (
    at int, fault text, id bigint, queue int, sender int, receiver int, priority smallint,
    deliveries int, lease bigint, created_at timestamptz, expires_at timestamptz, key text,
    origin int, content bytea)
    LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT 1, NULL::text, r.id, r.queue, r.sender, r.receiver, r.priority, r.deliveries,
           NULL::bigint, m.created_at, r.expires_at, r.key, m.queue, m.content
    FROM (SELECT * FROM airmail.ready f
          WHERE f.receiver = for_reader AND f.sender = from_sender
            AND (f.expires_at IS NULL OR f.expires_at > clock_timestamp())
          ORDER BY f.id LIMIT 1) r
        JOIN airmail.message m ON m.slot = r.slot AND m.id = r.id;
    IF NOT FOUND THEN
        RETURN QUERY
        SELECT 1, w.fault, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::smallint, NULL::int,
               NULL::bigint, NULL::timestamptz, NULL::timestamptz, NULL::text, NULL::int, NULL::bytea
        FROM (VALUES (for_reader, 'reader'), (from_sender, 'sender')) w (account, fault)
        WHERE NOT EXISTS (SELECT FROM airmail.account a WHERE a.id = w.account);
    END IF;
END $$;

-- The queues that hold something for a receiver; 0: a broadcast. Goes from queue to queue in the
-- index, so what is in them does not count.
CREATE FUNCTION airmail.queues_for(for_receiver int) RETURNS SETOF int
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_queue int := 0;
BEGIN
    LOOP
        SELECT r.queue INTO found_queue FROM airmail.ready r
        WHERE r.receiver = for_receiver AND r.queue > found_queue
          AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp())
        ORDER BY r.queue LIMIT 1;
        EXIT WHEN found_queue IS NULL;
        RETURN NEXT found_queue;
    END LOOP;
END $$;
