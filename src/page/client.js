// The JavaScript client (clients/js), as the server serves it to every page.
// @ts-check
// oxlint-disable-next-line import/no-absolute-path -- an address of this server, not a file
export * from '/client/index.js';
