-- For `psql`, and for applications that hand messages over within their own transaction: what is
-- sent is there when it commits, and what was received is gone when it commits, together with all
-- else that it does. By name; errors have the code's name as their message.

-- Sends a message. Without a receiver (null) it is a broadcast.
CREATE FUNCTION airmail.send(
    queue text, sender text, receiver text, content bytea, priority int DEFAULT 0,
    key text DEFAULT NULL, delay interval DEFAULT '0', lifetime interval DEFAULT NULL)
RETURNS bigint
    LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_variable
DECLARE
    stored record;
BEGIN
    CASE
        WHEN priority NOT BETWEEN 0 AND 9 THEN
            PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'priority', priority::text);
        WHEN octet_length(content) > 1048576 THEN
            PERFORM airmail.fail('MESSAGE_TOO_LARGE', 2, 'content', octet_length(content)::text);
        WHEN octet_length(key) NOT BETWEEN 1 AND 255 THEN
            PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'key', octet_length(key)::text);
        WHEN delay < '0' OR delay > '10 years' THEN
            PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'delay', delay::text);
        WHEN lifetime <= '0' OR lifetime > '10 years' THEN
            PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'lifetime', lifetime::text);
        ELSE NULL;
    END CASE;
    SELECT * INTO stored FROM airmail.send_many(
        ARRAY[airmail.find_queue(queue)], ARRAY[airmail.find_account(sender)],
        ARRAY[CASE WHEN receiver IS NULL THEN 0 ELSE airmail.find_account(receiver) END],
        ARRAY[content], ARRAY[priority::smallint], ARRAY[key],
        ARRAY[ceil(extract(epoch FROM delay) * 1000)::bigint],
        ARRAY[ceil(extract(epoch FROM lifetime) * 1000)::bigint]);
    -- Deleted since it was found.
    IF stored.fault = 'queue' THEN
        PERFORM airmail.fail('QUEUE_NOT_FOUND', 34, 'queue', queue);
    ELSIF stored.fault IS NOT NULL THEN
        PERFORM airmail.fail('ACCOUNT_NOT_FOUND', 42, stored.fault,
                             CASE stored.fault WHEN 'sender' THEN sender ELSE receiver END);
    END IF;
    RETURN stored.id;
END $$;

-- The same with a text.
CREATE FUNCTION airmail.send(
    queue text, sender text, receiver text, content text, priority int DEFAULT 0,
    key text DEFAULT NULL, delay interval DEFAULT '0', lifetime interval DEFAULT NULL)
RETURNS bigint
    LANGUAGE sql
    AS $$ SELECT airmail.send(queue, sender, receiver, convert_to(content, 'UTF8'), priority, key,
                              delay, lifetime) $$;

-- Takes the oldest messages for a reader: removes them, or leases them for `lease`.
CREATE FUNCTION airmail.receive(
    queue text, reader text, count int DEFAULT 1, broadcast boolean DEFAULT false,
    lease interval DEFAULT NULL)
RETURNS TABLE (
    id bigint, sender text, receiver text, content bytea, created_at timestamptz, priority smallint,
    key text, deliveries int, lease_id bigint)
    LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_variable
DECLARE
    asker int := airmail.find_account(reader);
BEGIN
    IF count NOT BETWEEN 1 AND 1000 THEN
        PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'count', count::text);
    ELSIF lease <= '0' OR lease > '10 years' THEN
        PERFORM airmail.fail('INVALID_ARGUMENT', 1, 'lease', lease::text);
    END IF;
    RETURN QUERY
    SELECT t.id, s.name, r.name, t.content, t.created_at, t.priority, t.key, t.deliveries, t.lease
    FROM airmail.take_many(
            ARRAY[airmail.find_queue(queue)], ARRAY[asker],
            ARRAY[CASE WHEN broadcast THEN 0 ELSE asker END], ARRAY[count], '{0}',
            ceil(extract(epoch FROM lease) * 1000)::bigint) t
        LEFT JOIN airmail.account s ON s.id = t.sender
        LEFT JOIN airmail.account r ON r.id = t.receiver
    WHERE t.id IS NOT NULL;
END $$;

-- Shows the oldest messages for a reader, which stay.
CREATE FUNCTION airmail.peek(
    queue text, reader text, count int DEFAULT 1, broadcast boolean DEFAULT false)
RETURNS TABLE (
    id bigint, sender text, receiver text, content bytea, created_at timestamptz, priority smallint,
    key text, deliveries int)
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan SET jit = off
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
    SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_variable
DECLARE
    asker int := airmail.find_account(reader);
BEGIN
    RETURN QUERY
    SELECT t.id, s.name, r.name, t.content, t.created_at, t.priority, t.key, t.deliveries
    FROM airmail.peek_many(
            ARRAY[airmail.find_queue(queue)], ARRAY[asker],
            ARRAY[CASE WHEN broadcast THEN 0 ELSE asker END], ARRAY[count], '{0}') t
        LEFT JOIN airmail.account s ON s.id = t.sender
        LEFT JOIN airmail.account r ON r.id = t.receiver
    WHERE t.id IS NOT NULL;
END $$;

-- Says that a leased message is done with.
CREATE FUNCTION airmail.acknowledge(id bigint, lease_id bigint) RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    IF NOT EXISTS (SELECT FROM airmail.acknowledge_many(ARRAY[id], ARRAY[lease_id])) THEN
        PERFORM airmail.fail('LEASE_ENDED', 44, 'lease_id', lease_id::text);
    END IF;
END $$;

-- Keeps a leased message for so long from now.
CREATE FUNCTION airmail.extend(id bigint, lease_id bigint, lease interval) RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    IF NOT EXISTS (SELECT FROM airmail.extend_many(
            ARRAY[id], ARRAY[lease_id], ceil(extract(epoch FROM lease) * 1000)::bigint)) THEN
        PERFORM airmail.fail('LEASE_ENDED', 44, 'lease_id', lease_id::text);
    END IF;
END $$;

-- Gives a leased message back.
CREATE FUNCTION airmail.release(id bigint, lease_id bigint, delay interval DEFAULT '0')
RETURNS void
    LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    IF NOT EXISTS (SELECT FROM airmail.release_many(
            ARRAY[id], ARRAY[lease_id], ceil(extract(epoch FROM delay) * 1000)::bigint)) THEN
        PERFORM airmail.fail('LEASE_ENDED', 44, 'lease_id', lease_id::text);
    END IF;
END $$;
