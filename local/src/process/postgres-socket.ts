// The Unix sockets of the embedded Postgres servers. Neither server listens on a TCP port.
import { join } from 'node:path'

/** Maximum length of the path of a Unix socket on Linux, in bytes, without the final zero. */
export const maxSocketBytes = 107

/** Ports of the two servers. Both sockets are in one directory, where the port distinguishes them. */
export const socketPorts = { homes: 5432, controlDatabase: 5433 } as const

/** A server that listens on a socket, and the first password to try of its superuser. */
export interface SocketServer {
  /** Directory of the socket. */
  sockets: string
  port: number
  password: string
}

/** Returns the path of a server's socket, whose name Postgres derives from the port. */
export function socketFile(directory: string, port: number): string {
  return join(directory, `.s.PGSQL.${port}`)
}

/** Returns the superuser's URL of a database. The directory of the socket is in the place of the host. */
export function socketUrl({ sockets, port, password }: SocketServer, database: string): string {
  return `postgresql://postgres:${encodeURIComponent(password)}@${encodeURIComponent(sockets)}:${port}/${database}`
}
