import { defineConfig } from 'prisma/config'

// The address is only for those who run the `prisma` command by hand; the service applies migrations by itself.
export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  datasource: { url: process.env['TENANTRY_CONTROL_DATABASE_URL'] ?? 'postgresql://127.0.0.1:5432/tenantry_control' },
})
