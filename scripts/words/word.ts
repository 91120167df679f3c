// The form of the list of words and of its exceptions.

/** The kind of text that a word was found in; `path` is the name of a file or folder, `text` that of a string or template. */
export type Kind = 'path' | 'identifier' | 'comment' | 'text'

/** A word of ours for which the field has another. */
export interface Word {
  /** The key that exceptions and counts name. */
  readonly word: string
  /** The words to write instead. */
  readonly write: string
  /** Matches prose: comments and texts. A space matches any white space. */
  readonly prose?: string
  /** Matches an identifier whose parts are separated by spaces, in lower case: "left file" for `LeftFile` and `left_file`. */
  readonly name?: string
  /** Matches the name of a file or folder, in the same form. Without it, `name` applies. */
  readonly path?: string
}

/** A use of a word that stays. An exception that matches nothing is itself an error. */
export interface Exception {
  /** The key of the word; undefined matches every word. */
  readonly word?: string
  /** The identifier or the path as written; undefined matches every one. */
  readonly name?: string
  /** The beginning of the paths that it applies to; undefined means all files. */
  readonly files?: string
  /** The kind of text that it applies to; undefined means every kind. */
  readonly kind?: Kind
  readonly reason: string
}
