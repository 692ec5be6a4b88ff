-- +goose Up

-- Uploads that may have been given up, and those that are to be removed.
CREATE INDEX campaign_uploads_alive ON campaign_uploads (alive_until) WHERE NOT ended;
CREATE INDEX campaign_uploads_ended ON campaign_uploads (id) WHERE ended;

-- +goose Down
DROP INDEX campaign_uploads_alive, campaign_uploads_ended;
