// Why the door does not let a call through, in words for the operator's log and the caller.

export class Rejected extends Error {
  override readonly name = 'Refused'
}
