package testenv

// forgeSQL makes the table live follow manual changes of pushes in tests. It ignores changes by the service.
const forgeSQL = `
	CREATE OR REPLACE FUNCTION forged() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF TG_OP = 'UPDATE' THEN
			IF OLD.status = 'scheduled' AND NEW.status = 'scheduled' THEN
				UPDATE live SET recipient_key = NEW.recipient_key, shard = NEW.recipient_key & 255, send_at = NEW.send_at, expires_at = NEW.expires_at, tenant_id = NEW.tenant_id,
					channel = NEW.channel, plan = NEW.plan, attempts = attempts + NEW.attempts - OLD.attempts,
					next_at = CASE WHEN token IS NULL THEN NEW.next_at ELSE next_at END
				WHERE recipient_key = OLD.recipient_key AND push_id = OLD.id;
				RETURN NULL;
			END IF;
		END IF;
		IF TG_OP <> 'INSERT' THEN
			DELETE FROM live WHERE recipient_key = OLD.recipient_key AND push_id = OLD.id;
		END IF;
		IF TG_OP <> 'DELETE' THEN
			INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, attempts, phase, bulk, push_id, tenant_id, channel, shard)
			SELECT NEW.recipient_key, NEW.send_at, NEW.next_at, NEW.expires_at, NEW.plan, NEW.attempts, 0, false, NEW.id, NEW.tenant_id, NEW.channel, NEW.recipient_key & 255
			WHERE NEW.status = 'scheduled' ON CONFLICT DO NOTHING;
		END IF;
		RETURN NULL;
	END $$;
	CREATE OR REPLACE FUNCTION forged_shard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.shard := NEW.recipient_key & 255; RETURN NEW; END $$;
	CREATE OR REPLACE TRIGGER forged_shard BEFORE INSERT OR UPDATE ON pushes
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged_shard();
	CREATE OR REPLACE TRIGGER forged_shard BEFORE INSERT OR UPDATE ON sends
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged_shard();
	CREATE OR REPLACE TRIGGER forged AFTER INSERT OR UPDATE OR DELETE ON pushes
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged()`

// Forge lets a test change the table pushes of a database by hand, and makes workers see it. It ignores statements on
// connections of the service.
func Forge(t T, databaseURL string) {
	t.Helper()
	Exec(t, databaseURL, forgeSQL)
}
