// The screens of the console, by their addresses.

/** The addresses of all screens, and of all tabs of a tenant. */
export const screensOf = (tenantId: string): Record<string, string> => ({
  fleet: '#/fleet',
  ...Object.fromEntries(
    ['overview', 'logs', 'usage', 'invoices', 'backups', 'drift', 'settings'].map((tab) => [
      `tenant: ${tab}`,
      `#/tenants/${tenantId}/${tab}`,
    ]),
  ),
  ...Object.fromEntries(
    ['usage', 'plans', 'regions', 'rollouts', 'webhooks', 'keys', 'sessions', 'audit', 'nothing'].map((path) => [
      path,
      `#/${path}`,
    ]),
  ),
})
