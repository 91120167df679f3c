// The errors of moves, with messages that the operator may see.

/** The end of a move whose reason the operation shows. The source continues to serve. */
export class MoveError extends Error {
  /** Whether a later attempt may succeed. */
  readonly isTemporary: boolean
  /** Whether the copy differs from the home, or would after the next change. */
  readonly isLasting: boolean

  /** Creates the error. `message` is public: it names tables and counts, never content. */
  constructor(message: string, options: ErrorOptions & { isTemporary?: boolean; isLasting?: boolean } = {}) {
    super(message, options)
    this.isTemporary = options.isTemporary ?? false
    this.isLasting = options.isLasting ?? false
  }
}
