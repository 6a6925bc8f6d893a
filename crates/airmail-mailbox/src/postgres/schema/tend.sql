-- What nodes do beside requests: learn what is settled, and keep the storage small.

-- Raises the epoch. `settled` ids belong to epochs up to `raised - 1`; `held` is the oldest epoch
-- in which a sender is still under way (null: none). All ids up to `settled` are decided as soon
-- as `held` is greater than `raised - 1`.
CREATE FUNCTION airmail.settle() RETURNS TABLE (raised bigint, settled bigint, held bigint)
    LANGUAGE plpgsql AS $$
BEGIN
    settled := (SELECT last_value FROM airmail.message_id);
    raised := nextval('airmail.epoch');
    held := (SELECT min(l.objid::bigint) FROM pg_locks l
             WHERE l.locktype = 'advisory' AND l.classid = 740201 AND l.objsubid = 2
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
               AND l.granted AND l.objid::bigint < raised);
    RETURN NEXT;
END $$;

-- The first place, from `low` on, at which each (queue, receiver) has something, as this moment's
-- snapshot sees it: what others are about to take is still there.
CREATE FUNCTION airmail.heads(queues int[], receivers int[], lows bigint[])
RETURNS TABLE (at int, place bigint)
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT u.at::int, (
        SELECT r.place FROM airmail.ready r
        WHERE r.receiver = u.receiver AND r.queue = u.queue AND r.place >= u.low
        ORDER BY r.place LIMIT 1)
    FROM unnest(queues, receivers, lows) WITH ORDINALITY u (queue, receiver, low, at);
END $$;

-- Readers of some node wait, for the next `seconds`.
CREATE FUNCTION airmail.wait_for(seconds int) RETURNS void
    LANGUAGE sql AS $$
    SELECT setval('airmail.waited_until', greatest(
        (SELECT last_value FROM airmail.waited_until),
        ceil(extract(epoch FROM clock_timestamp()))::bigint + seconds))
$$;

-- Whether some transaction has been holding one of the slot's tables for longer than a request
-- does. To wait for its end would make everybody wait.
CREATE FUNCTION airmail.is_held(slot int) RETURNS boolean
    LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.relation IN (('airmail.message_' || slot)::regclass,
                             ('airmail.ready_' || slot)::regclass,
                             ('airmail.later_' || slot)::regclass)
          AND l.granted AND a.pid <> pg_backend_pid()
          AND a.xact_start < clock_timestamp() - interval '250 milliseconds')
$$;

-- Empties a slot: what is alive in it, at most `live_max` messages, goes to the active slot, under
-- a lock that lets no statement see a half of it; then its files are cut to nothing. Says whether
-- that could be done now.
CREATE FUNCTION airmail.empty(slot int, active int, live_max int) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    live int;
BEGIN
    IF airmail.is_held(slot) THEN
        RETURN false;
    END IF;
    PERFORM set_config('lock_timeout', '50ms', true);
    BEGIN
        EXECUTE format('LOCK TABLE airmail.ready_%1$s, airmail.later_%1$s, airmail.message_%1$s
                        IN ACCESS EXCLUSIVE MODE', slot);
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        RETURN false;
    END;
    EXECUTE format('SELECT count(*) FROM (
                        (SELECT id FROM airmail.ready_%1$s LIMIT $1)
                        UNION ALL (SELECT id FROM airmail.later_%1$s LIMIT $1)) alive', slot)
        INTO live USING live_max + 1;
    IF live > live_max THEN
        RETURN false;
    END IF;
    IF live > 0 THEN
        EXECUTE format(
            'WITH ids AS (SELECT id FROM airmail.ready_%1$s
                          UNION ALL SELECT id FROM airmail.later_%1$s)
             INSERT INTO airmail.message
             SELECT $1, m.priority, m.queue, m.sender, m.receiver, m.id, m.created_at, m.key, m.content
             FROM ids JOIN airmail.message_%1$s m ON m.id = ids.id', slot) USING active;
        EXECUTE format(
            'INSERT INTO airmail.ready
             SELECT $1, priority, deliveries, queue, sender, receiver, place, id, expires_at, key
             FROM airmail.ready_%1$s', slot) USING active;
        EXECUTE format(
            'INSERT INTO airmail.later
             SELECT $1, priority, deliveries, queue, sender, receiver, id, due_at, lease, expires_at, key
             FROM airmail.later_%1$s', slot) USING active;
    END IF;
    EXECUTE format('TRUNCATE airmail.ready_%1$s, airmail.later_%1$s, airmail.message_%1$s', slot);
    RETURN true;
END $$;

-- Keeps the storage small. Slots that have been left are emptied when little is alive in them; when
-- the active one has grown to `slot_bytes` and another is empty, that becomes the active one. Only
-- one node at a time does it. Says what was done, for the log.
CREATE FUNCTION airmail.tend(slot_bytes bigint, live_max int) RETURNS text
    LANGUAGE plpgsql AS $$
DECLARE
    active int;
    free int;
    live int;
    done text;
BEGIN
    IF NOT pg_try_advisory_xact_lock(740204, 1) THEN
        RETURN NULL;
    END IF;
    active := (SELECT last_value FROM airmail.active_slot);
    FOR slot IN 0..2 LOOP
        CONTINUE WHEN slot = active;
        IF pg_relation_size(('airmail.message_' || slot)::regclass) = 0 THEN
            free := slot;
            CONTINUE;
        END IF;
        EXECUTE format('SELECT count(*) FROM (
                            (SELECT id FROM airmail.ready_%1$s LIMIT $1)
                            UNION ALL (SELECT id FROM airmail.later_%1$s LIMIT $1)) alive', slot)
            INTO live USING live_max + 1;
        IF live <= live_max AND airmail.empty(slot, active, live_max) THEN
            done := concat_ws(', ', done, 'emptied ' || slot || ' of all but ' || live);
            free := slot;
            -- One a call: every other transaction waits for this one.
            EXIT;
        END IF;
    END LOOP;
    IF free IS NOT NULL
       AND pg_table_size(('airmail.message_' || active)::regclass)
         + pg_table_size(('airmail.ready_' || active)::regclass)
         + pg_table_size(('airmail.later_' || active)::regclass) >= slot_bytes THEN
        PERFORM setval('airmail.active_slot', free);
        done := concat_ws(', ', done, 'active is ' || free);
    END IF;
    RETURN done;
END $$;
