// Part of `npm run coverage`: vitest ends its processes before Node could write what ran in them.
import { takeCoverage } from 'node:v8';
import { afterAll } from 'vitest';

afterAll(takeCoverage);
