-- Accounts and queues.

CREATE FUNCTION airmail.create_account(new_name text) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    created int;
BEGIN
    INSERT INTO airmail.account (name) VALUES (new_name) ON CONFLICT (name) DO NOTHING
    RETURNING id INTO created;
    IF created IS NULL THEN
        PERFORM airmail.fail('ACCOUNT_NAME_EXISTS', 41, 'name', new_name);
    END IF;
    RETURN created;
END $$;

CREATE FUNCTION airmail.find_account(wanted text) RETURNS int
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found int := (SELECT a.id FROM airmail.account a WHERE a.name = wanted);
BEGIN
    IF found IS NULL THEN
        PERFORM airmail.fail('ACCOUNT_NOT_FOUND', 42, 'account', wanted);
    END IF;
    RETURN found;
END $$;

CREATE FUNCTION airmail.create_queue(new_name text, of_dead_letters int, so_many int) RETURNS int
    LANGUAGE plpgsql AS $$
DECLARE
    created int;
BEGIN
    IF of_dead_letters IS NOT NULL THEN
        -- Held, so that it is not deleted before this queue is there.
        PERFORM pg_advisory_xact_lock_shared(740202, of_dead_letters);
        PERFORM airmail.check_queue(of_dead_letters);
    END IF;
    INSERT INTO airmail.queue (name, dead_letter, deliveries_max)
    VALUES (new_name, of_dead_letters, so_many) ON CONFLICT (name) DO NOTHING
    RETURNING id INTO created;
    IF created IS NULL THEN
        PERFORM airmail.fail('QUEUE_NAME_EXISTS', 33, 'name', new_name);
    END IF;
    RETURN created;
END $$;

CREATE FUNCTION airmail.find_queue(wanted text) RETURNS int
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found int := (SELECT q.id FROM airmail.queue q WHERE q.name = wanted);
BEGIN
    IF found IS NULL THEN
        PERFORM airmail.fail('QUEUE_NOT_FOUND', 34, 'queue', wanted);
    END IF;
    RETURN found;
END $$;

CREATE FUNCTION airmail.check_queue(wanted int) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM airmail.queue q WHERE q.id = wanted) THEN
        PERFORM airmail.fail('QUEUE_NOT_FOUND', 34, 'queue', wanted::text);
    END IF;
END $$;

-- Removes messages of a queue, or to and from an account. A message that is on its way between
-- `ready` and `later` is waited for and met on the other side.
CREATE FUNCTION airmail.remove_all(of_queue int, of_account int) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    removed bigint := 0;
    n bigint;
    clean int := 0;
BEGIN
    WHILE clean < 2 LOOP
        DELETE FROM airmail.later l
        WHERE l.queue = of_queue OR l.sender = of_account OR l.receiver = of_account;
        GET DIAGNOSTICS n = ROW_COUNT;
        removed := removed + n;
        clean := CASE WHEN n = 0 THEN clean + 1 ELSE 0 END;
        DELETE FROM airmail.ready r
        WHERE r.queue = of_queue OR r.sender = of_account OR r.receiver = of_account;
        GET DIAGNOSTICS n = ROW_COUNT;
        removed := removed + n;
        clean := CASE WHEN n = 0 THEN clean + 1 ELSE 0 END;
    END LOOP;
    RETURN removed;
END $$;

CREATE FUNCTION airmail.delete_account(gone int, by_force boolean) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    -- Waits for those who are sending to or from it, and keeps others out.
    PERFORM pg_advisory_xact_lock(740203, gone % 64);
    IF NOT EXISTS (SELECT FROM airmail.account a WHERE a.id = gone) THEN
        PERFORM airmail.fail('ACCOUNT_NOT_FOUND', 42, 'account', gone::text);
    END IF;
    IF by_force THEN
        PERFORM airmail.remove_all(NULL, gone);
    ELSIF EXISTS (SELECT FROM airmail.ready r WHERE r.sender = gone OR r.receiver = gone)
        OR EXISTS (SELECT FROM airmail.later l WHERE l.sender = gone OR l.receiver = gone) THEN
        PERFORM airmail.fail('ACCOUNT_NOT_EMPTY', 43, 'account', gone::text);
    END IF;
    DELETE FROM airmail.account a WHERE a.id = gone;
END $$;

CREATE FUNCTION airmail.delete_queue(gone int, by_force boolean) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', '5s', true);
    PERFORM pg_advisory_xact_lock(740202, gone);
    PERFORM airmail.check_queue(gone);
    IF EXISTS (SELECT FROM airmail.queue q WHERE q.dead_letter = gone AND q.id <> gone) THEN
        PERFORM airmail.fail('QUEUE_NOT_EMPTY', 35, 'queue',
                             gone::text || ' takes the dead letters of another');
    END IF;
    IF by_force THEN
        PERFORM airmail.remove_all(gone, NULL);
    ELSIF EXISTS (SELECT FROM airmail.ready r WHERE r.queue = gone)
        OR EXISTS (SELECT FROM airmail.later l WHERE l.queue = gone) THEN
        PERFORM airmail.fail('QUEUE_NOT_EMPTY', 35, 'queue', gone::text);
    END IF;
    DELETE FROM airmail.queue q WHERE q.id = gone;
END $$;

CREATE FUNCTION airmail.purge(wanted int) RETURNS bigint
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM airmail.check_queue(wanted);
    RETURN airmail.remove_all(wanted, NULL);
END $$;

CREATE FUNCTION airmail.counts(wanted int, OUT ready bigint, OUT delayed bigint, OUT leased bigint)
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM airmail.check_queue(wanted);
    ready := (SELECT count(*) FROM airmail.ready r WHERE r.queue = wanted
              AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp()));
    SELECT count(*) FILTER (WHERE l.lease IS NULL), count(*) FILTER (WHERE l.lease IS NOT NULL)
    INTO delayed, leased FROM airmail.later l WHERE l.queue = wanted;
END $$;
