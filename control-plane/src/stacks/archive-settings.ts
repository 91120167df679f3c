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
/** Seconds after which a segment that is not full is finished, if it contains a change. */
const finishSeconds = 30

/**
 * Shell command that puts a finished segment into the spool. At the bound it drops the segment and succeeds: the archive
 * gets a gap, which the control plane reports, and the tenant's disk does not become full.
 */
const command = [
  `d=${archiveSpool}/on; [ -d $d ] || exit 0`,
  'case %f in *.*) exit 0;; esac',
  `[ $(ls $d | wc -l) -lt ${maxWaiting} ] || exit 0`,
  'gzip -1 < %p > $d/%f.new && sync $d/%f.new && mv $d/%f.new $d/%f.gz && sync $d && exit 0',
  'rm -f $d/%f.new',
  `[ $(ls pg_wal/archive_status | grep -c ready) -ge ${maxWaiting} ]`,
].join('; ')

/** Settings that archive the WAL, by name. */
export const archiveSettings: Readonly<Record<string, string>> = {
  archive_mode: 'on',
  archive_timeout: `${finishSeconds}s`,
  archive_command: command,
}
