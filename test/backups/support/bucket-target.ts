// A real S3 server with a bucket for backups, and the file of backup targets that names it.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startS3Server, type S3Server } from '#test/support/s3-server.ts'

export interface BucketTarget {
  server: S3Server
  /** Path of the file of backup targets. */
  file: string
  /** Returns the names of the files of archives in the bucket. */
  archived(): Promise<string[]>
}

/** Starts the server. It stops with the test. @param others further targets, in the form of the file */
export async function startBucketTarget(t: Test, others: readonly object[] = []): Promise<BucketTarget> {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-targets-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const { endpoint, bucket, accessKeyId, secretAccessKey } = server.settings
  const [file, secretFile] = [join(directory, 'targets.json'), join(directory, 'secret')]
  await writeFile(secretFile, secretAccessKey)
  const s3 = { endpoint, bucket, access_key_id: accessKeyId, secret_access_key_file: secretFile }
  await writeFile(file, JSON.stringify([{ name: 'offsite', s3 }, ...others]))
  return {
    server,
    file,
    archived: async () =>
      (await server.keys()).whole
        .filter((key) => key.startsWith('archives-'))
        .map((key) => key.split('/').at(-1) ?? ''),
  }
}
