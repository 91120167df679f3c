// A method of Node's agents that the types lack.
import type { ClientRequest, ClientRequestArgs } from 'node:http'

declare module 'node:http' {
  interface Agent {
    /** Called by each request. Gives it a free connection, or creates one. */
    addRequest(request: ClientRequest, options: ClientRequestArgs): void
  }
}
