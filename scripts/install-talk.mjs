// Installs the libraries of conversations: the server runs it at the first conversation.
import process from 'node:process';
import { SetupError, installTalk } from './setup.mjs';

try {
  await installTalk((line) => console.error(`[setup] ${line}`));
} catch (error) {
  if (!(error instanceof SetupError)) {
    throw error;
  }
  console.error(error.message);
  process.exit(1);
}
