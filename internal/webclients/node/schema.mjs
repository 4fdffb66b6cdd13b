// Writes the server's schema, as it tells it: node schema.mjs FILE
import { writeFileSync } from "node:fs";

import { buildClientSchema, getIntrospectionQuery, printSchema } from "graphql";

import { urls } from "./scenario.mjs";

const response = await fetch(urls[0], {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ query: getIntrospectionQuery() }),
});
writeFileSync(process.argv[2], printSchema(buildClientSchema((await response.json()).data)));
