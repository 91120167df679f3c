// What the suite attacks.

/**
 * The kind of platform that an attack is carried out on: an installation of `npm start`, or a region on a Docker Engine whose
 * tenants share its Postgres and runtime or have their own.
 */
export type Target = 'npm start' | 'shared Postgres' | 'own Postgres'

export const allTargets: readonly Target[] = ['npm start', 'shared Postgres', 'own Postgres']
