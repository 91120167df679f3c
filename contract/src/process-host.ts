// The protocol between the control plane and the host of tenants' processes of `npm start`: HTTP over a Unix socket. A call has
// its arguments as JSON; a program that is run has its standard input as the body, and frames of output as the response.

/** Path of a call of the host. */
export function hostPath(call: string): string {
  return `/v1/${call}`
}

/** Header with the container and the command of a program, as JSON in base64url. */
export const hostExecHeader = 'tenantry-exec'

/** Streams of a program's frames. The last frame is `exit`, whose text is the exit code. */
export const hostStreams = { stdout: 1, stderr: 2, exit: 3 } as const

/** One frame of a program's output. */
export interface HostFrame {
  stream: number
  bytes: Buffer
}

const headerBytes = 5
const maxFrameBytes = 1024 * 1024

/** Returns a frame as it is sent: the stream, the length in 4 bytes, and the bytes. */
export function hostFrame(stream: number, bytes: Uint8Array): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt8(stream, 0)
  header.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([header, bytes])
}

/** Reads frames from a response. @throws Error for a frame of more than 1 MiB, or one that is not complete */
export async function* readHostFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostFrame, undefined> {
  let pending = Buffer.alloc(0)
  for await (const chunk of source) {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= headerBytes) {
      const length = pending.readUInt32BE(1)
      if (length > maxFrameBytes) throw new Error(`A frame of ${length} bytes exceeds ${maxFrameBytes} bytes.`)
      if (pending.length < headerBytes + length) break
      yield { stream: pending.readUInt8(0), bytes: pending.subarray(headerBytes, headerBytes + length) }
      pending = pending.subarray(headerBytes + length)
    }
  }
  if (pending.length > 0) throw new Error('The connection ended within a frame.')
}
