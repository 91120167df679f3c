// What becomes of a client's call, by the right that it needs and by who calls; and how a refusal is seen.
import type { Files, Reply, Storage } from './storage-clients.ts'

/** In the order of the actors: the bucket's owner, another user, nobody, the service. */
type Outcomes = readonly [string, string, string, string]
export const actors = ['owner', 'other user', 'anonymous', 'service'] as const
export const policies = ['public', 'private', 'authenticated'] as const
export type Policy = (typeof policies)[number]

const always: Outcomes = ['yes', 'yes', 'yes', 'yes']

/** What the policies of the specification (2.1, 4.1 and 5) make of each right. */
export const rights = {
  see: { public: always, private: ['yes', '404', '404', 'yes'], authenticated: ['yes', 'yes', '404', 'yes'] },
  'see, signed in': {
    public: ['yes', 'yes', '401', 'yes'],
    private: ['yes', '404', '401', 'yes'],
    authenticated: ['yes', 'yes', '401', 'yes'],
  },
  'see in the list': {
    public: always,
    private: ['yes', 'none', 'none', 'yes'],
    authenticated: ['yes', 'none', 'none', 'yes'],
  },
  'read without a token': {
    public: always,
    private: ['404', '404', '404', '404'],
    authenticated: ['404', '404', '404', '404'],
  },
  add: {
    public: ['yes', '403', '401', 'yes'],
    private: ['yes', '404', '401', 'yes'],
    authenticated: ['yes', 'yes', '401', 'yes'],
  },
  'add where there is one': {
    public: ['409', '403', '401', '409'],
    private: ['409', '404', '401', '409'],
    authenticated: ['409', '409', '401', '409'],
  },
  change: {
    public: ['yes', '403', '401', 'yes'],
    private: ['yes', '404', '401', 'yes'],
    authenticated: ['yes', '403', '401', 'yes'],
  },
  'remove some': {
    public: ['yes', 'none', '401', 'yes'],
    private: ['yes', '404', '401', 'yes'],
    authenticated: ['yes', 'none', '401', 'yes'],
  },
  'be signed in': {
    public: ['yes', 'yes', '401', 'yes'],
    private: ['yes', 'yes', '401', 'yes'],
    authenticated: ['yes', 'yes', '401', 'yes'],
  },
  'have the URL': { public: always, private: always, authenticated: always },
} as const satisfies Record<string, Record<Policy, Outcomes>>

/** What stands in `path` of the bucket before the call. */
export const content = 'what the owner wrote'
export const path = 'folder/mine.txt'

export interface At {
  policy: Policy
  bucket: string
  /** Another bucket of the same owner and policy. */
  elsewhere: string
  storage: Storage
  files: Files
  /** The owner's own client. */
  owner: Files
}

export interface Case {
  /** As it is shown. */
  name: string
  method: string
  right: keyof typeof rights
  /** @returns `none` when nothing was refused and nothing found or done. @throws Refused */
  call(at: At): Promise<'yes' | 'no' | 'none'>
  /** For calls that change something: whether they did, as the service sees it. */
  done?(at: At, service: Storage): Promise<boolean>
  /** Before the call, as the service. */
  prepare?(at: At, service: Storage): Promise<unknown>
  /** What a client of a version makes of an outcome by itself. */
  instead?: Record<string, Record<string, string>>
}

/** A refusal that the client has parsed. */
export class Rejected extends Error {
  readonly outcome: string

  constructor({ name, message, status, statusCode }: NonNullable<Reply['error']>) {
    super(message)
    this.outcome =
      name === 'StorageApiError' && String(status) === statusCode
        ? statusCode
        : `${name} ${status ?? ''}/${statusCode ?? ''}: ${message}`
  }
}

export function dataOf({ data, error }: Reply): unknown {
  if (error !== null) throw new Rejected(error)
  return data
}
