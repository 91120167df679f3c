// Reads why the Postgres of a tenant restarts repeatedly, which only its log reports.
import { type Engine, EngineError, type EngineErrorCode } from '../engines/index.ts'

/** Reasons in Postgres' log why it does not start. */
const logReasons: readonly { line: RegExp; code: EngineErrorCode; message: string }[] = [
  {
    line: /no space left on device/i,
    code: 'DISK_FULL',
    message: "The disk of the tenant's Postgres is full.",
  },
  // Line of the entrypoint (images/postgres/entrypoint.sh).
  {
    line: /holds no data directory/,
    code: 'VOLUME_MISSING',
    message: 'The volume "data" is empty, and its data is gone. No empty database is started.',
  },
]

/** Returns the last of these reasons in the newest lines of the log; undefined for none. */
export async function reasonInLog(
  engine: Pick<Engine, 'logs'>,
  stackId: string,
  signal: AbortSignal,
): Promise<EngineError | undefined> {
  let reason: EngineError | undefined
  for await (const { text } of engine.logs(stackId, 'postgres', { follow: false, tail: 20 }, signal)) {
    const found = logReasons.find(({ line }) => line.test(text))
    if (found !== undefined) reason = new EngineError(found.code, found.message)
  }
  return reason
}
