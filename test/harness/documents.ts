// What a running server says against the documents that it serves: /openapi.json, /asyncapi.json.
import assert from 'node:assert/strict';
import { z } from 'zod';
import type { TestServer } from './server.ts';

type Json = Record<string, unknown>;

interface ResponseObject {
  readonly description: string;
  readonly content?: Readonly<Record<string, { readonly schema?: Json }>>;
}
interface OpenApi {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Record<string, ResponseObject> }>>>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Json>> };
}
interface AsyncApi {
  readonly channels: Readonly<
    Record<string, { readonly address: string; readonly messages: Readonly<Record<string, Json>> }>
  >;
  readonly components: {
    readonly messages: Readonly<
      Record<string, { readonly contentType: string; readonly payload: Json }>
    >;
  };
}

/** Both documents of a server. */
export class Documents {
  readonly #openApi: OpenApi;
  readonly #asyncApi: AsyncApi;

  private constructor(openApi: OpenApi, asyncApi: AsyncApi) {
    this.#openApi = openApi;
    this.#asyncApi = asyncApi;
  }

  static async of({ url }: Pick<TestServer, 'url'>): Promise<Documents> {
    const [openApi, asyncApi] = await Promise.all(
      ['/openapi.json', '/asyncapi.json'].map(async (path) => (await fetch(url + path)).json()),
    );
    return new Documents(openApi as OpenApi, asyncApi as AsyncApi);
  }

  /**
   * @param body what the response says, parsed
   * @param operation method and path template, as the document has them: 'GET /faces/{face_id}'
   * @throws AssertionError when the document of the operation has no such status, does not name the
   * code there, or describes another body
   */
  checkRefusal(operation: string, { status, headers }: Response, body: Json): void {
    const [method = '', path = ''] = operation.split(' ');
    const { responses } = this.#openApi.paths[path]?.[method.toLowerCase()] ?? {};
    const told = responses?.[status];
    assert.ok(told !== undefined, `${operation}: ${status} is not in the document`);
    const [mediaType = '', content] = Object.entries(told.content ?? {})[0] ?? [];
    assert.equal(
      headers.get('content-type')?.split(';')[0],
      mediaType,
      `${operation}: media type of ${status}`,
    );
    this.#schema(content?.schema ?? {}).parse(body);
    if (status !== 422) {
      assert.ok(
        told.description.split(/\W+/).includes(String(body['code'])),
        `${operation}: ${String(body['code'])} is not named under ${status}: ${told.description}`,
      );
    }
  }

  /**
   * @param address path of the WebSocket
   * @param form type of the message; with `Event` behind it, the form of events=json
   * @throws AssertionError when the socket has no such message, or the text is another
   */
  checkMessage(address: string, form: string, text: string): void {
    const channel = Object.values(this.#asyncApi.channels).find((one) => one.address === address);
    assert.ok(channel !== undefined, `${address} is not in the document`);
    assert.ok(form in channel.messages, `${address}: no message ${form}`);
    const { contentType, payload } = this.#asyncApi.components.messages[form]!;
    z.fromJSONSchema(payload).parse(contentType === 'application/json' ? JSON.parse(text) : text);
  }

  /** References of OpenAPI lead into its components; those of a schema into its own definitions. */
  #schema(schema: Json): z.ZodType {
    const text = JSON.stringify({ ...schema, $defs: this.#openApi.components.schemas });
    return z.fromJSONSchema(
      JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')) as Json,
    );
  }
}
