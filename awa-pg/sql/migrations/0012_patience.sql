-- additive
--
-- Purpose: how long the silence of a process must last before others take it for dead, as it asked itself.

-- In microseconds. A rescuer that has more patience than that keeps it; none has less.
ALTER TABLE /*schema*/awa.runtime_instances ADD COLUMN staleness_us bigint NOT NULL DEFAULT 0;
