#!/bin/bash
# Lets root alone reach the instance metadata service, which gives the credentials of the nodes' role to whoever asks.
# Jobs have a role of their own: see credentials.sh. At every boot a unit sets the rules before there is a network.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source ./lib.sh

rules=$HOME_DIR/metadata.nft
# It looks users' keys up there: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-connect-set-up.html
users=0
connect=$(id -u ec2-instance-connect 2>/dev/null) && users="0, $connect"

if ! command -v nft >/dev/null; then install nftables; fi
# `meta skuid`, with != too, matches no packet that belongs to no file: the kernel's own, and those of closed sockets.
# Such packets may end connections of root, and open none.
# https://github.com/torvalds/linux/blob/master/net/netfilter/nft_meta.c
# Containers on a bridge are forwarded. https://wiki.nftables.org/wiki-nftables/index.php/Netfilter_hooks
write_file "$rules" <<EOF
table inet cdk_training_cluster
delete table inet cdk_training_cluster
table inet cdk_training_cluster {
  chain output {
    type filter hook output priority filter; policy accept;
    ip daddr 169.254.169.254 tcp dport 80 jump service
    ip6 daddr fd00:ec2::254 tcp dport 80 jump service
  }
  chain service {
    meta skuid { $users } accept
    tcp flags & (syn | ack) == syn reject with tcp reset
    meta skuid != 0 reject with tcp reset
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 169.254.169.254 tcp dport 80 reject with tcp reset
    ip6 daddr fd00:ec2::254 tcp dport 80 reject with tcp reset
  }
}
EOF
# The service nftables.service removes all rules whenever it starts or stops.
write_file "$ROOT/etc/systemd/system/cdk-training-cluster-metadata.service" <<EOF
[Unit]
Description=Rules that let root alone reach the instance metadata service
DefaultDependencies=no
After=nftables.service
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service
Wants=network-pre.target
Before=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$(command -v nft) -f ${rules#"$ROOT"}
ExecReload=$(command -v nft) -f ${rules#"$ROOT"}

[Install]
WantedBy=multi-user.target nftables.service
EOF
systemctl daemon-reload
systemctl enable cdk-training-cluster-metadata.service
nft -f "$rules" ||
  die "every job could use the nodes' role: the firewall took no rule for the instance metadata service; look at nft -f $rules"
