// The error of a rejected call.

/** A call that the proxy rejects. The message is a clause for the operator's log and the client. */
export class Rejected extends Error {
  override readonly name = 'Rejected'
}
