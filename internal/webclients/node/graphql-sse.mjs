import { create, scenario } from "./scenario.mjs";
import { watching } from "./watch-sse.mjs";

await scenario("graphql-sse", (url, authorization) => ({
  create: create(url, authorization),
  ...watching(url, () => authorization),
}));
