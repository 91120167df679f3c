// Settings of a Postgres whose write-ahead log (WAL) is archived. Pure.

/**
 * Directory on the volume of the data, in which finished segments wait for the control plane. `on/` contains the
 * segments. Without it no archive has begun, and segments are dropped.
 */
export const archiveSpool = '/var/lib/postgresql/archive'

/**
 * Maximum number of segments that wait in the spool: 512 MiB, uncompressed. As many wait in Postgres' own directory while
 * none can be written to the spool, because the volume is full.
 */
const maxWaiting = 32
/** Maximum number of segments that wait on a cluster's primary, which may begin with those that it had as a replica. */
const maxWaitingOfPrimary = 2 * maxWaiting
/** Seconds after which a segment that is not full is finished, if it contains a change. */
const finishSeconds = 30

const spool = `${archiveSpool}/on`
/**
 * Shell command that compresses its input, and sets `z` to the suffix. An image of an earlier release has only `gzip`, which
 * needs four times as much CPU time.
 */
export const compressCommand = 'if command -v zstd > /dev/null; then z=zst; zstd -1 -q; else z=gz; gzip -1; fi'
const store = `${compressCommand} < %p > $d/%f.new && sync $d/%f.new && mv $d/%f.new $d/%f.$z && sync $d && exit 0; rm -f $d/%f.new`
const isStuck = `[ $(ls pg_wal/archive_status | grep -c ready) -ge ${maxWaiting} ]`

/**
 * Shell command that puts a finished segment into the spool. At the bound it drops the segment and succeeds: the archive
 * gets a gap, which the control plane reports, and the tenant's disk does not become full.
 */
const command = [
  `d=${spool}; [ -d $d ] || exit 0`,
  'case %f in *.*) exit 0;; esac',
  `[ $(ls $d | wc -l) -lt ${maxWaiting} ] || exit 0`,
  store,
  isStuck,
].join('; ')

/**
 * Shell command of a cluster's member. A replica keeps its newest segments, which the control plane reads if the member
 * becomes the primary, or if the primary lacks them. The histories of timelines are part of the log.
 */
const memberCommand = [
  `d=${spool}; mkdir -p $d`,
  'case %f in *.history) ;; *.*) exit 0;; esac',
  `if [ -e standby.signal ]; then ls $d | head -n -${maxWaiting - 1} | (cd $d && xargs -r rm -f)`,
  `elif [ $(ls $d | wc -l) -ge ${maxWaitingOfPrimary} ]; then exit 0; fi`,
  store,
  isStuck,
].join('; ')

/** Settings that archive the WAL of a single Postgres, by name. */
export const archiveSettings: Readonly<Record<string, string>> = {
  archive_mode: 'on',
  archive_timeout: `${finishSeconds}s`,
  archive_command: command,
}

/** Settings with which each member of a cluster spools the log of the primary, by name. */
export const memberArchiveSettings: Readonly<Record<string, string>> = {
  archive_mode: 'always',
  archive_timeout: `${finishSeconds}s`,
  archive_command: memberCommand,
}
