// The words that Tenantry does not use, and what to write instead. Words that also have an ordinary meaning have patterns for
// the other uses only. `\b` is a word boundary, and a space matches any white space.
import type { Word } from './word.ts'

/** Creates a word with one pattern for prose and names. */
const everywhere = (word: string, write: string, pattern: string): Word => ({
  word,
  write,
  prose: String.raw`\b(?:${pattern})\b`,
  name: String.raw`\b(?:${pattern})\b`,
})

/** Creates a word that applies to identifiers and names of files. */
const inNames = (word: string, write: string, pattern: string): Word => ({ word, write, name: pattern })

/** Creates a word that applies to comments and texts. */
const inProse = (word: string, write: string, pattern: string): Word => ({ word, write, prose: pattern })

/** Creates a word that applies to names of files and folders. */
const inPaths = (word: string, write: string, pattern: string): Word => ({ word, write, path: pattern })

export const words: readonly Word[] = [
  everywhere('anew', 'again', 'anew'),
  everywhere('answer', 'response; respond, return', 'answer(?:s|ed|er|ers|ing|able)?|unanswered'),
  everywhere('area', 'module', 'areas?'),
  everywhere('ask', 'request, query, call', 'ask(?:s|ed|er|ing)?|unasked'),
  everywhere('beside', 'alongside, next to, in addition to', 'besides?'),
  everywhere('books', 'counters, ledger, records; posted', 'books|booked|booking|bookings|bookkeeping|unbooked'),
  everywhere('door', 'HTTP handler, Docker proxy, Postgres proxy', 'doors?|doorkeeper|docker-door'),
  everywhere('entrant', 'what it is', 'entrants?'),
  everywhere('everybody', 'all users, all clients', 'everybody|everyone'),
  everywhere('forget', 'evict, delete', 'forg[eo]t(?:s|ten|ting)?'),
  everywhere('guest', 'attached container; WebAssembly module', 'guests?'),
  {
    word: 'give back',
    write: 'release, return',
    prose: String.raw`\bg[ia]v(?:e|es|en|ing) (?:[\w']+ ){0,3}back\b`,
    name: String.raw`\bg[ia]v(?:e|es|en|ing) (?:\w+ )?back\b`,
  },
  {
    word: 'go on',
    write: 'continue',
    prose: String.raw`\b(?:go|goes|going|went|gone) on\b(?! (?:the|a|an|this|that|each|every)\b)`,
    name: String.raw`\b(?:go|goes|going|went|gone) on\b`,
  },
  {
    word: 'hand',
    write: 'handle; pass',
    prose: String.raw`\bhand(?:ed|ing)\b|(?<!foreign |other |own )\bhands\b|\bhand (?:it|them|on|over|out|back)\b`,
    name: String.raw`(?<!\bby )\b(?:hands?|handed|handing)\b`,
  },
  everywhere('heard of', 'received', 'hears?(?: \\w+)? (?:of|from)|heard|hearing (?:of|from)'),
  everywhere('hurry', 'expedite', 'hurr(?:y|ies|ied|ying)|unhurried'),
  everywhere('incarnation', 'instance, boot', 'incarnations?'),
  everywhere('invite', 'attach', 'invit(?:e|es|ed|ing)|invitations?'),
  everywhere('keeper', 'controller, scheduler, renewer, retention job', 'keepers?'),
  {
    word: 'let in',
    write: 'admit',
    prose:
      String.raw`\blet(?:s|ting)? (?:(?:it|them|more|all|others|one|clients?|requests?) )?in\b` +
      String.raw`(?! (?:the|a|an|one|this|that|its|their)\b)`,
    name: String.raw`\blet(?:s|ting)? (?:\w+ )?in\b`,
  },
  {
    word: 'look',
    write: 'poll, tick, check, read',
    prose: String.raw`\blook(?:s|ed|ing)?\b(?! (?:up|like)\b)|\blook(?:s|ed|ing)? (?:\w+ )+up to\b`,
    name: String.raw`\blook(?:s|ed|ing)?\b(?! (?:up|like)\b)`,
  },
  everywhere('manner', 'mode', 'manners?'),
  everywhere('mend', 'repair', 'mend(?:s|ed|ing|er)?|unmended'),
  everywhere('news', 'changes', 'news'),
  everywhere('nobody', 'no client, no caller, no user', 'nobody(?: s)?|no one'),
  everywhere('patience', 'timeout', 'patien(?:ce|t|tly)|impatien(?:ce|t|tly)'),
  everywhere('pieces', 'chunks, parts', 'pieces?|piecewise'),
  {
    word: 'place',
    write: 'slot, position, location, path',
    // Not: in place, in its place, into place, take place, one place, decimal places, to place.
    prose:
      String.raw`(?<!\b(?:in|into|in \w+|take|takes|took|taking|one|single|first|second|decimal|to|must|will|can) )\bplaces?\b` +
      String.raw`(?! (?:after|before) the (?:decimal )?point)`,
    name: String.raw`(?<!\b(?:in|decimal|first|take|takes) )\bplaces?\b`,
  },
  everywhere('poke', 'notify', 'pok(?:e|es|ed|ing)'),
  everywhere('problem', 'error, violation', 'problems?'),
  everywhere('question', 'request, query', 'questions?(?! marks?)|question(?:ed|er|ing|able|ably)'),
  everywhere('refuse', 'reject, error', 'refus(?:e|es|ed|er|ing|al|als)'),
  everywhere('rehearse', 'dry run', String.raw`rehears\w*`),
  everywhere('said', 'reported, states', String.raw`say|says|said|saying|unsaid`),
  everywhere('seat', 'waiter', 'seat(?:s|ed|ing)?'),
  everywhere('sight', 'status source, observation', 'sights?'),
  everywhere('somebody', 'a user, a client', 'somebody|someone|anybody|anyone'),
  {
    word: 'stand',
    write: 'is, exist; stub, substitute',
    prose: String.raw`(?<!long-)\b(?:stand(?:s|ing)?|stood)\b(?! (?:for|alone)\b)`,
    name: String.raw`\b(?:stand(?:s|ing)?|stood)\b(?! (?:alone|by)\b)`,
  },
  everywhere('stranger', 'unauthenticated client; foreign', 'strangers?'),
  everywhere('tell', 'report, send, notify', 'tell(?:s|ing|er)?|told|untold'),
  {
    word: 'trip',
    write: 'round trip',
    prose: String.raw`(?<!\bround[- ])\btrips?\b`,
    name: String.raw`(?<!\bround )\btrips?\b`,
  },
  everywhere('under way', 'in progress', 'under ?way'),
  everywhere('unsent', 'pending', 'unsent'),
  everywhere('whoever', 'callers, users, clients', 'who(?:m|so|mso)?ever'),
  everywhere('witness', 'observed usage, status source', String.raw`(?:run[- ])?witness(?:es|ed|ing)?`),

  inNames('at most', 'max…', String.raw`\bat (?:most|least)\b`),
  inNames('counted', 'what it is', String.raw`^counted\b(?! at$)`),
  inNames('kept', 'stored, retained', String.raw`\bkept\b`),
  inNames(
    'left',
    'remaining; persisted',
    String.raw`\bleft (?!(?:arg|side|over|join|padding|to)\b)\w|\w (?<!(?:is|on|to) )left$`,
  ),
  inNames('most', 'max…', String.raw`^(?:most|longest)\b(?! ly\b)|^max most\b`),
  inNames('fewest', 'min…', String.raw`^(?:least|fewest|shortest)\b(?! recent)`),
  inNames('raise', 'increment', String.raw`^raises?\b(?! (?:row|event|exception)\b)|\braise generation\b`),
  inNames('soon', 'what it does', String.raw`\bsoon\b`),
  inNames('store mark', 'store ID', String.raw`\b(?:store|container) marks?\b|\bread mark\b`),
  inNames('who', 'caller, user, client', String.raw`^who\b`),
  inNames('within', 'withTimeout, or what it does', String.raw`^within$`),

  inPaths('flow', 'what it does', String.raw`^flow$`),
  inPaths('joined', 'what it does', String.raw`^joined$`),

  inProse('connections that stay', 'long-lived connections', String.raw`\bconnections? that stays?\b`),
  inProse(
    'is no',
    'is not a …',
    String.raw`(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|greater\b|larger\b|smaller\b|other\b)`,
  ),
  everywhere('leftover', 'what they are: orphaned files, remaining bytes', 'left[- ]?overs?'),
  inProse('raise', 'increment', String.raw`\brais(?:e|es|ed|ing) (?:[\w']+ ){0,3}generation`),
  inProse('store mark', 'store ID', String.raw`\bstore(?:'s|s')? marks?\b|\bmarks? of the store\b`),
  inProse(
    'who',
    'clients that, callers that',
    String.raw`(?:^|[.:;(] ?|\b(?:for|of|to|by|from|but|than|and|as|that) )who\b`,
  ),
]
