"""OPC UA server with the types of OPC 34100 under a machine as in OPC 40001."""
