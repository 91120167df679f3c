// The outcome of a client's call, by the right that it needs and its caller, and the error of a rejected call.
import type { Files, Reply, Storage } from './storage-clients.ts'

/** Values in the order of the actors: the bucket's owner, another user, an anonymous caller, the service. */
type Outcomes = readonly [string, string, string, string]
export const actors = ['owner', 'other user', 'anonymous', 'service'] as const
export const policies = ['public', 'private', 'authenticated'] as const
export type Policy = (typeof policies)[number]

const always: Outcomes = ['yes', 'yes', 'yes', 'yes']

/** The outcomes that the policies of the specification (2.1, 4.1 and 5) give each right. */
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

/** The content of `path` in the bucket before the call. */
export const content = 'what the owner wrote'
export const path = 'folder/mine.txt'

export interface At {
  policy: Policy
  bucket: string
  /** The name of another bucket of the same owner and policy. */
  elsewhere: string
  storage: Storage
  files: Files
  /** The owner's own client. */
  owner: Files
}

export interface Case {
  /** The name in the table of docs/storage.md. */
  name: string
  method: string
  right: keyof typeof rights
  /** @returns `none` when the call succeeded but found or changed nothing. @throws Rejected */
  call(at: At): Promise<'yes' | 'no' | 'none'>
  /** Returns whether a call changed something, as the service sees it. */
  done?(at: At, service: Storage): Promise<boolean>
  /** Runs before the call, as the service. */
  prepare?(at: At, service: Storage): Promise<unknown>
  /** Outcomes that a version of the client reports instead. */
  instead?: Record<string, Record<string, string>>
}

/** An error that the client has parsed. */
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
