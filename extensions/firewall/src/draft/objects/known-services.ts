/** Services that every machine may have, by the ports of the IANA registry and of the programs themselves. */
import type { Service } from '../model.ts';

const table: Readonly<Record<string, string>> = {
    amqp: 'tcp/5672',
    cockpit: 'tcp/9090',
    dhcp: 'udp/67',
    dhcpv6: 'udp/547',
    dns: 'tcp/53 udp/53',
    'dns-over-tls': 'tcp/853',
    docker: 'tcp/2375-2376',
    elasticsearch: 'tcp/9200',
    ftp: 'tcp/21',
    git: 'tcp/9418',
    http: 'tcp/80',
    http3: 'udp/443',
    https: 'tcp/443',
    imap: 'tcp/143',
    imaps: 'tcp/993',
    ipsec: 'udp/500 udp/4500',
    kubernetes: 'tcp/6443',
    ldap: 'tcp/389',
    ldaps: 'tcp/636',
    mdns: 'udp/5353',
    memcached: 'tcp/11211',
    mongodb: 'tcp/27017',
    mosh: 'udp/60000-61000',
    mqtt: 'tcp/1883',
    mysql: 'tcp/3306',
    nfs: 'tcp/2049',
    'node-exporter': 'tcp/9100',
    ntp: 'udp/123',
    openvpn: 'udp/1194',
    ping: 'icmp icmpv6',
    pop3: 'tcp/110',
    pop3s: 'tcp/995',
    postgresql: 'tcp/5432',
    prometheus: 'tcp/9090',
    rdp: 'tcp/3389 udp/3389',
    redis: 'tcp/6379',
    rsync: 'tcp/873',
    samba: 'tcp/139 tcp/445 udp/137-138',
    smtp: 'tcp/25',
    smtps: 'tcp/465',
    snmp: 'udp/161',
    ssh: 'tcp/22',
    submission: 'tcp/587',
    syslog: 'tcp/514 udp/514',
    vnc: 'tcp/5900-5903',
    wireguard: 'udp/51820'
};

/** The usual services, by name. */
export const knownServices: ReadonlyMap<string, Service> = new Map(
    Object.entries(table).map(([name, ports]) => [name, { name, ports: ports.split(' ') }])
);
