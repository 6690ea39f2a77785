import { defineConfig } from "prisma/config";

// The address is for commands that ask the database; "prisma generate" does not.
export default defineConfig({ schema: "schema.prisma", datasource: { url: process.env.DAYBOOK_DATABASE_URL ?? "" } });
