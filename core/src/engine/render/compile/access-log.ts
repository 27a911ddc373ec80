/** The engine's access log: what the engine writes of a request, and how much of it stays on the disk. */
import type { EngineConfig } from '../../port.ts';
import type { CompileFolders, Part } from './context.ts';

/** Megabytes of one file; the engine then begins another one. */
const fileMegabytes = 16;
/** Files beside the current one. */
const keptFiles = 7;
/** The most that the log takes on the disk, in bytes. */
export const accessLogBytes = (keptFiles + 1) * fileMegabytes * 1024 * 1024;

const name = 'portico';
const logger = `http.log.access.${name}`;

/** Headers of a request that hold credentials, or make lines long. The engine can only leave out headers by their names. */
const unwritten = [
    'Accept',
    'Accept-Charset',
    'Accept-Encoding',
    'Accept-Language',
    'Access-Control-Request-Headers',
    'Access-Control-Request-Method',
    'Access-Token',
    'Alt-Used',
    'Api-Key',
    'Apikey',
    'Authentication',
    'Authorization',
    'Cache-Control',
    'Cf-Access-Client-Id',
    'Cf-Access-Client-Secret',
    'Cf-Access-Jwt-Assertion',
    'Cf-Authorization-Token',
    'Cf-Connecting-Ip',
    'Cf-Ipcountry',
    'Cf-Ray',
    'Cf-Visitor',
    'Client-Cert',
    'Client-Cert-Chain',
    'Connection',
    'Content-Disposition',
    'Content-Encoding',
    'Content-Length',
    'Content-Type',
    'Cookie',
    'Date',
    'Dnt',
    'Dpop',
    'Expect',
    'Forwarded',
    'From',
    'If-Match',
    'If-Modified-Since',
    'If-None-Match',
    'If-Range',
    'If-Unmodified-Since',
    'Keep-Alive',
    'Link',
    'Origin',
    'Pragma',
    'Priority',
    'Private-Token',
    'Proxy-Authorization',
    'Purpose',
    'Range',
    'Referer',
    'Remote-User',
    'Sec-Ch-Ua',
    'Sec-Ch-Ua-Mobile',
    'Sec-Ch-Ua-Platform',
    'Sec-Fetch-Dest',
    'Sec-Fetch-Mode',
    'Sec-Fetch-Site',
    'Sec-Fetch-User',
    'Sec-Gpc',
    'Sec-Purpose',
    'Sec-Websocket-Accept',
    'Sec-Websocket-Extensions',
    'Sec-Websocket-Key',
    'Sec-Websocket-Protocol',
    'Sec-Websocket-Version',
    'Signature',
    'Signature-Input',
    'Stripe-Signature',
    'Te',
    'Trailer',
    'Transfer-Encoding',
    'True-Client-Ip',
    'Upgrade',
    'Upgrade-Insecure-Requests',
    'Via',
    'X-Access-Token',
    'X-Amz-Security-Token',
    'X-Amzn-Oidc-Data',
    'X-Api-Key',
    'X-Api-Token',
    'X-Apikey',
    'X-Auth',
    'X-Auth-Key',
    'X-Auth-Token',
    'X-Client-Cert',
    'X-Csrf-Token',
    'X-Csrftoken',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Uri',
    'X-Gitlab-Token',
    'X-Hub-Signature',
    'X-Hub-Signature-256',
    'X-Idempotency-Key',
    'X-Original-Uri',
    'X-Original-Url',
    'X-Real-Ip',
    'X-Refresh-Token',
    'X-Requested-With',
    'X-Secret',
    'X-Session-Id',
    'X-Session-Token',
    'X-Token',
    'X-Trigger-Token',
    'X-User-Token',
    'X-Vault-Token',
    'X-Webhook-Secret',
    'X-Xsrf-Token'
];

const left = { filter: 'delete' };

/** The part of `logging.logs` that writes the access log; nothing while it is off. */
export const accessLogs = (isOn: boolean, { accessLogFile }: CompileFolders): Part =>
    isOn
        ? {
              access: {
                  level: 'INFO',
                  include: [logger],
                  writer: {
                      output: 'file',
                      filename: accessLogFile,
                      roll_size_mb: fileMegabytes,
                      roll_keep: keptFiles,
                      roll_gzip: false
                  },
                  encoder: {
                      format: 'filter',
                      wrap: { format: 'json', message_key: '', level_key: '', name_key: '' },
                      fields: {
                          ...Object.fromEntries(
                              unwritten.map((header) => [`request>headers>${header}`, left])
                          ),
                          'request>remote_port': left,
                          'request>proto': left,
                          'request>tls': left,
                          'request>uri': { filter: 'regexp', regexp: '\\?.*', value: '' },
                          bytes_read: left,
                          user_id: left,
                          resp_headers: left
                      }
                  }
              }
          }
        : {};

/** Whether a configuration writes the access log. */
export const isAccessLogged = (config: EngineConfig | null): boolean =>
    (config?.['logging'] as { readonly logs?: { readonly access?: unknown } } | undefined)?.logs?.access !==
    undefined;

/** What keeps access records out of the engine's own log; nothing while there are none. */
export const withoutAccess = (isOn: boolean): Part => (isOn ? { exclude: [logger] } : {});

/** The part of the server that makes access records; nothing while the log is off. */
export const serverLogs = (isOn: boolean): Part => (isOn ? { logs: { default_logger_name: name } } : {});
