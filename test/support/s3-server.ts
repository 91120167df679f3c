// Starts a real S3 server with a bucket for one test file: OpenStack Swift from Debian's packages, on a free port.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, ListMultipartUploadsCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import type { S3Settings } from '#tenant-runtime/storage/backend/s3-connection.ts'
import { freePort } from './postgres.ts'

const program = new URL('swift-server.py', import.meta.url).pathname
/** Debian's Python, which finds Debian's packages; PATH may contain another Python before it. */
const python = '/usr/bin/python3'
const startMilliseconds = 60_000

export interface S3Server {
  /** Connection settings of an existing bucket. */
  readonly settings: S3Settings
  /** Returns the keys of all objects (`whole`) and of unfinished multipart uploads (`begun`). */
  keys(): Promise<{ whole: string[]; begun: string[] }>
  /** Kills the server with SIGKILL. */
  kill(): Promise<void>
  /** Starts the server again after `kill`, with the same objects on the same port. */
  start(): Promise<void>
  stop(): Promise<void>
}

/** Starts the server. @throws Error when Swift is not installed (`scripts/swift.ts` installs it) or does not respond */
export async function startS3Server(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-swift-'))
  const port = await freePort()
  const secretAccessKey = randomBytes(16).toString('hex')
  const settings: S3Settings = {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    bucket: 'blobs',
    prefix: 'here/',
    pathStyle: true,
    accessKeyId: 'test:tester',
    secretAccessKey,
  }
  const client = new S3Client({
    endpoint: settings.endpoint ?? '',
    region: settings.region,
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: { accessKeyId: settings.accessKeyId, secretAccessKey },
    requestHandler: { requestTimeout: 10_000, throwOnRequestTimeout: true },
  })
  let server: ChildProcess | undefined

  const kill = async () => {
    const running = server
    server = undefined
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const gone = once(running, 'exit')
    running.kill('SIGKILL')
    await gone
  }
  const start = async () => {
    const child = spawn(python, [program, directory, String(port), 'tester', secretAccessKey], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    server = child
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-4_000)))
    const state = { isGone: false }
    child.once('exit', () => (state.isGone = true))
    child.once('error', (error) => {
      stderr += error.message
      state.isGone = true
    })
    const deadline = Date.now() + startMilliseconds
    for (;;) {
      try {
        // The response to this signed request has an error code when the server does not create the bucket.
        await client.send(new CreateBucketCommand({ Bucket: settings.bucket }))
        return
      } catch (cause) {
        if (cause instanceof Error && cause.name === 'BucketAlreadyOwnedByYou') return
        if (Date.now() > deadline || state.isGone) {
          await kill()
          throw new Error(
            `The S3 server did not start. Are swift-proxy, swift-account, swift-container and swift-object installed? ${stderr}`,
            { cause },
          )
        }
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
  }

  await start()
  return {
    settings,
    async keys() {
      const { Contents: objects = [] } = await client.send(new ListObjectsV2Command({ Bucket: settings.bucket }))
      const { Uploads: uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: settings.bucket }))
      return { whole: objects.map(({ Key }) => Key ?? ''), begun: uploads.map(({ Key }) => Key ?? '') }
    },
    kill,
    start,
    async stop() {
      await kill()
      client.destroy()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
