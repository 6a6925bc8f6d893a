-- Sending: what nodes call. The functions for people are in `people.sql`.

-- Tells the nodes whose readers wait that there is something for them. Nobody waits: costs a look.
CREATE FUNCTION airmail.ring(queues int[], receivers int[]) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT last_value FROM airmail.waited_until) < extract(epoch FROM clock_timestamp()) THEN
        RETURN false;
    END IF;
    PERFORM pg_notify('airmail_mailbox', rung.queue || ' ' || rung.receiver || ' ' || rung.n)
    FROM (SELECT u.queue, u.receiver, count(*) AS n FROM unnest(queues, receivers) u (queue, receiver)
          GROUP BY 1, 2) rung;
    RETURN true;
END $$;

-- Stores messages and says for each its id, or what is wrong with it: `fault` is null, 'queue',
-- 'sender' or 'receiver'. Delays and lifetimes in milliseconds; a receiver of 0: broadcast.
CREATE FUNCTION airmail.send_many(
    queues int[], senders int[], receivers int[], contents bytea[], priorities smallint[],
    keys text[], delays_ms bigint[], lifetimes_ms bigint[])
RETURNS TABLE (at int, id bigint, fault text)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    sent_at timestamptz := clock_timestamp();
    entered int;
    active smallint;
    is_entered boolean;
    waited_until bigint;
    ids bigint[];
BEGIN
    -- Held until the transaction ends: the epoch, so that `settle` knows that this sender is under
    -- way, and queues and accounts, so that they are not deleted under its hands. Who says that
    -- readers wait raises the epoch behind it: what is read with the epoch is new enough.
    LOOP
        SELECT e.last_value, s.last_value INTO entered, active
        FROM airmail.epoch e, airmail.active_slot s;
        is_entered := pg_advisory_xact_lock_shared(740201, entered) IS NOT NULL;
        SELECT e.last_value = entered, w.last_value INTO is_entered, waited_until
        FROM airmail.epoch e, airmail.waited_until w;
        EXIT WHEN is_entered;
    END LOOP;
    -- One message, as most are: expressions, which cost a tenth of a statement.
    IF cardinality(queues) = 1 THEN
        is_entered := pg_advisory_xact_lock_shared(740202, queues[1]) IS NOT NULL
            AND pg_advisory_xact_lock_shared(740203, least(senders[1] % 64, receivers[1] % 64)) IS NOT NULL
            AND pg_advisory_xact_lock_shared(740203, greatest(senders[1] % 64, receivers[1] % 64)) IS NOT NULL;
        ids := ARRAY[nextval('airmail.message_id')];
    ELSE
        PERFORM pg_advisory_xact_lock_shared(held.kind, held.number)
        FROM (SELECT 740202 AS kind, u.queue AS number FROM unnest(queues) u (queue)
              UNION SELECT 740203, u.account % 64 FROM unnest(senders || receivers) u (account)
              ORDER BY 1, 2) held;
        ids := ARRAY(
            SELECT nextval('airmail.message_id') FROM generate_series(1, cardinality(queues)));
    END IF;
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT u.*, ids[u.at] AS id,
               -- Not by EXISTS: that would be made a hash of all there are.
               CASE WHEN (SELECT q.id FROM airmail.queue q WHERE q.id = u.queue) IS NULL THEN 'queue'
                    WHEN (SELECT a.id FROM airmail.account a WHERE a.id = u.sender) IS NULL
                    THEN 'sender'
                    WHEN u.receiver <> 0 AND (
                        SELECT a.id FROM airmail.account a WHERE a.id = u.receiver) IS NULL
                    THEN 'receiver' END AS fault,
               sent_at + lifetime_ms * interval '1 millisecond' AS expires_at
        FROM unnest(queues, senders, receivers, contents, priorities, keys, delays_ms, lifetimes_ms)
            WITH ORDINALITY
            u (queue, sender, receiver, content, priority, key, delay_ms, lifetime_ms, at)
    ), stored AS (
        INSERT INTO airmail.message
            (slot, priority, queue, sender, receiver, id, created_at, key, content)
        SELECT active, a.priority, a.queue, a.sender, a.receiver, a.id, sent_at, a.key, a.content
        FROM asked a WHERE a.fault IS NULL
    ), readied AS (
        INSERT INTO airmail.ready
            (slot, priority, deliveries, queue, sender, receiver, place, id, expires_at, key)
        SELECT active, a.priority, 0, a.queue, a.sender, a.receiver,
               airmail.place_of(a.id, a.priority, true), a.id, a.expires_at, a.key
        FROM asked a WHERE a.fault IS NULL AND a.delay_ms = 0
    )
    SELECT a.at::int, CASE WHEN a.fault IS NULL THEN a.id END, a.fault FROM asked a ORDER BY a.at;
    IF 0 < ANY (delays_ms) THEN
        INSERT INTO airmail.later
            (slot, priority, deliveries, queue, sender, receiver, id, due_at, expires_at, key)
        SELECT active, m.priority, 0, m.queue, m.sender, m.receiver, m.id,
               sent_at + delays_ms[u.at] * interval '1 millisecond',
               sent_at + lifetimes_ms[u.at] * interval '1 millisecond', m.key
        FROM unnest(ids) WITH ORDINALITY u (id, at)
            -- Only what was stored.
            JOIN airmail.message m ON m.slot = active AND m.id = u.id
        WHERE delays_ms[u.at] > 0;
    END IF;
    IF waited_until >= extract(epoch FROM sent_at) THEN
        PERFORM airmail.ring(queues, receivers);
    END IF;
END $$;
